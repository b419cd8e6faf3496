"""A small HTTP service in front of PostgreSQL, to begin with. Put yours in its place.

GET /items/N   the item with that id
POST /items    a new item, from {"name": "…"}

It needs nothing but Python 3.8: postgres.py beside it speaks PostgreSQL's protocol. The environment has PORT, DATABASE_URL
and POOL, the number of connections to the database.
"""

import asyncio
import json
import os

import postgres

READ = "SELECT id, name FROM items WHERE id = $1"
WRITE = "INSERT INTO items (name) VALUES ($1) RETURNING id"

pool = asyncio.Queue()


async def query(sql, *values):
    """The rows of a statement, on whichever connection is free."""
    connection = await pool.get()
    try:
        return await connection.query(sql, *values)
    finally:
        pool.put_nowait(connection)


async def answer(method, path, body):
    """Status and body of one request."""
    if path == "/healthz":
        return "200 OK", {"status": "ok"}
    if method == "GET" and path.startswith("/items/"):
        number = path[len("/items/"):]
        rows = await query(READ, number) if number.isdecimal() and len(number) < 19 else []
        if rows:
            return "200 OK", {"id": int(rows[0][0]), "name": rows[0][1]}
        return "404 Not Found", {"error": "not_found"}
    if method == "POST" and path == "/items":
        try:
            name = json.loads(body)["name"]
        except (ValueError, KeyError, TypeError):
            return "400 Bad Request", {"error": "invalid_request"}
        rows = await query(WRITE, str(name))
        return "201 Created", {"id": int(rows[0][0])}
    return "404 Not Found", {"error": "not_found"}


async def serve(reader, writer):
    """One connection: request after request, until the other side closes it."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            length = 0
            for line in head[1:]:
                key, _, value = line.partition(":")
                if key.lower() == "content-length":
                    length = int(value)
            body = await reader.readexactly(length) if length else b""
            status, value = await answer(method, path, body)
            text = json.dumps(value).encode()
            fields = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
            writer.write(fields.encode() + text)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    for _ in range(int(os.environ["POOL"])):
        pool.put_nowait(await postgres.connect(os.environ["DATABASE_URL"]))
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]), backlog=1024)
    async with server:
        await server.serve_forever()


asyncio.run(main())
