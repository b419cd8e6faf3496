"""A small HTTP service to begin with: `GET /items/N` answers with item N. Put yours in its place.

It needs nothing but Python 3.8. One thread, keep-alive, HTTP/1.1; the port comes from the environment.
"""

import asyncio
import hashlib
import json
import os


def answer(method, path):
    """Status and body of one request."""
    if path == "/healthz":
        return "200 OK", {"status": "ok"}
    number = path[len("/items/"):]
    if method == "GET" and path.startswith("/items/") and number.isdecimal() and 1 <= int(number) <= 1000:
        # Some work, so that the service is what limits, and not what measures it.
        digest = hashlib.pbkdf2_hmac("sha256", number.encode(), b"some salt", 100).hex()
        return "200 OK", {"id": int(number), "name": f"item {number}", "digest": digest}
    return "404 Not Found", {"error": "not_found"}


class Http(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport):
        self.transport = transport
        self.waiting = b""

    def data_received(self, data):
        self.waiting += data
        while True:
            head, end, rest = self.waiting.partition(b"\r\n\r\n")
            if not end:
                return
            self.waiting = rest
            method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
            status, body = answer(method, path)
            text = json.dumps(body).encode()
            fields = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
            self.transport.write(fields.encode() + text)


async def main():
    server = await asyncio.get_running_loop().create_server(Http, "127.0.0.1", int(os.environ["PORT"]), backlog=1024)
    await server.serve_forever()


asyncio.run(main())
