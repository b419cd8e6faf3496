"""The CPU-bound endpoint on Python: asyncio takes requests, a pool of threads does the work."""

import asyncio
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def inside(points):
    state, hits = 1, 0
    for _ in range(points):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        x = state >> 16
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        y = state >> 16
        if x * x + y * y < 65536 * 65536:
            hits += 1
    return hits


def transform(body):
    try:
        items = json.loads(body)["items"]
        items.sort(key=lambda item: (-item["score"], item["id"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return 400, b'{"error":"invalid_request"}'
    fields = [
        {"id": item["id"], "sha256": sha256(f"{item['id']}:{item['name']}:{item['score']}")} for item in items[:50]
    ]
    digest = sha256("".join(field["sha256"] for field in fields))
    return 200, json.dumps({"digest": digest, "inside": inside(20000), "fields": fields}).encode()


async def connection(reader, writer):
    loop = asyncio.get_running_loop()
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            if (method, path) == ("GET", "/healthz"):
                status, answer = 200, b"{}"
            elif (method, path) == ("POST", "/transform"):
                status, answer = await loop.run_in_executor(POOL, transform, body)
            else:
                status, answer = 404, b'{"error":"not_found"}'
            head = f"HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n"
            writer.write(head.encode() + answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(connection, "127.0.0.1", int(os.environ["PORT"]), backlog=4096)
    async with server:
        await server.serve_forever()


POOL = ThreadPoolExecutor(max_workers=int(os.environ.get("CORES", "1")))
asyncio.run(main())
