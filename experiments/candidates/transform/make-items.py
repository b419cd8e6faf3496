"""Writes the items of the CPU-bound study: 1.2 MB of JSON, the same on every machine."""

import json

STATE = 1


def draw(most):
    global STATE
    STATE = (STATE * 1664525 + 1013904223) & 0xFFFFFFFF
    return (STATE >> 16) % most


def item(number):
    return {
        "id": number,
        "name": f"item {draw(65536)}",
        "score": draw(10_000),
        "tags": [f"tag-{draw(100)}" for _ in range(4)],
        "note": " ".join(f"{draw(65536):05d}" for _ in range(16)),
    }


with open("items.json", "w", encoding="ascii") as file:
    json.dump({"items": [item(number) for number in range(1, 6185)]}, file, separators=(",", ":"))
