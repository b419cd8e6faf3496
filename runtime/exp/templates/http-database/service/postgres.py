"""As much of PostgreSQL's protocol (version 3) as service.py needs, so that the example runs without a driver.

A real service uses a real driver. Texts in, texts out; each statement is prepared once per connection.
"""

import asyncio
import base64
import hashlib
import hmac
import os
import struct
from urllib.parse import unquote, urlsplit


class Failure(Exception):
    """What the server complained about."""


class Connection:
    """One session. One statement at a time."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.prepared = {}

    def send(self, kind, payload):
        self.writer.write(kind + struct.pack("!I", len(payload) + 4) + payload)

    async def receive(self):
        kind, length = struct.unpack("!cI", await self.reader.readexactly(5))
        payload = await self.reader.readexactly(length - 4)
        if kind == b"E":
            fields = dict((field[:1], field[1:].decode()) for field in payload.split(b"\0") if field)
            raise Failure(fields.get(b"M", "no message"))
        return kind, payload

    async def query(self, sql, *values):
        """The rows, each a list of texts (or None)."""
        name = self.prepared.get(sql)
        if name is None:
            name = self.prepared[sql] = f"s{len(self.prepared)}".encode()
            self.send(b"P", name + b"\0" + sql.encode() + b"\0" + struct.pack("!h", 0))
        bound = b"".join(struct.pack("!i", len(value.encode())) + value.encode() for value in values)
        self.send(b"B", b"\0" + name + b"\0" + struct.pack("!hh", 0, len(values)) + bound + struct.pack("!h", 0))
        self.send(b"E", b"\0" + struct.pack("!i", 0))
        self.send(b"S", b"")
        rows = []
        while True:
            kind, payload = await self.receive()
            if kind == b"D":
                rows.append(row(payload))
            elif kind == b"Z":
                return rows

    async def log_in(self, user, password, database):
        start = b"".join(part.encode() + b"\0" for part in ("user", user, "database", database)) + b"\0"
        self.writer.write(struct.pack("!II", len(start) + 8, 196608) + start)
        while True:
            kind, payload = await self.receive()
            if kind == b"Z":
                return
            if kind == b"R":
                await self.prove(struct.unpack("!I", payload[:4])[0], payload[4:], password)

    async def prove(self, method, data, password):
        """Answers the server's question for the password."""
        if method == 3:
            self.send(b"p", password.encode() + b"\0")
        elif method == 10:
            self.nonce = base64.b64encode(os.urandom(18)).decode()
            self.first = f"n=,r={self.nonce}"
            first = f"n,,{self.first}".encode()
            self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
        elif method == 11:
            given = dict(part.split("=", 1) for part in data.decode().split(","))
            salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(given["s"]), int(given["i"]))
            key = hmac.digest(salted, b"Client Key", "sha256")
            last = f"c=biws,r={given['r']}"
            signed = f"{self.first},{data.decode()},{last}".encode()
            signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
            proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()
            self.send(b"p", f"{last},p={proof}".encode())
        elif method not in (0, 12):
            raise Failure(f"the server asks for authentication {method}, which this example does not know")


def row(payload):
    values, at = [], 2
    for _ in range(struct.unpack("!h", payload[:2])[0]):
        (length,) = struct.unpack("!i", payload[at:at + 4])
        at += 4
        values.append(None if length < 0 else payload[at:at + length].decode())
        at += max(length, 0)
    return values


async def connect(url):
    """A session at postgres://user:password@host:port/database."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 5432)
    connection = Connection(reader, writer)
    await connection.log_in(unquote(parts.username), unquote(parts.password or ""), unquote(parts.path[1:]))
    return connection
