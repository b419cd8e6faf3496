// The CPU-bound endpoint on Node.js: one thread takes requests, a pool of workers does the work. A body's memory is handed
// over to its worker, not copied.
"use strict";
const http = require("node:http");
const { createHash } = require("node:crypto");
const { Worker, isMainThread, parentPort } = require("node:worker_threads");

function inside(points) {
  let state = 1;
  let hits = 0;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 16;
  };
  for (let point = 0; point < points; point++) {
    const x = next();
    const y = next();
    if (x * x + y * y < 65536 * 65536) hits++;
  }
  return hits;
}

const sha256 = (text) => createHash("sha256").update(text).digest("hex");

function transform(items) {
  items.sort((a, b) => b.score - a.score || a.id - b.id);
  const fields = items.slice(0, 50).map(({ id, name, score }) => ({ id, sha256: sha256(`${id}:${name}:${score}`) }));
  return { digest: sha256(fields.map((field) => field.sha256).join("")), inside: inside(20000), fields };
}

function serve() {
  const idle = [];
  const waiting = [];
  const give = (worker, task) => {
    worker.task = task;
    worker.postMessage(task.body, [task.body]);
  };
  for (let number = 0; number < Number(process.env.CORES || 1); number++) {
    const worker = new Worker(__filename);
    worker.on("message", (answer) => {
      const { done } = worker.task;
      const task = waiting.shift();
      if (task) give(worker, task);
      else idle.push(worker);
      done(answer);
    });
    idle.push(worker);
  }
  const server = http.createServer((request, response) => {
    const answer = (status, text) => {
      response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
      response.end(text);
    };
    if (request.method === "GET" && request.url === "/healthz") return answer(200, "{}");
    if (request.method !== "POST" || request.url !== "/transform") return answer(404, '{"error":"not_found"}');
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = new Uint8Array(Buffer.concat(parts)).buffer;
      const task = { body, done: (text) => (text === null ? answer(400, '{"error":"invalid_request"}') : answer(200, text)) };
      const worker = idle.pop();
      if (worker) give(worker, task);
      else waiting.push(task);
    });
  });
  server.keepAliveTimeout = 60000;
  server.listen(Number(process.env.PORT), "127.0.0.1");
}

if (isMainThread) {
  serve();
} else {
  parentPort.on("message", (body) => {
    let items;
    try {
      ({ items } = JSON.parse(Buffer.from(body).toString()));
      if (!Array.isArray(items)) throw new Error("no items");
    } catch {
      return parentPort.postMessage(null);
    }
    parentPort.postMessage(JSON.stringify(transform(items)));
  });
}
