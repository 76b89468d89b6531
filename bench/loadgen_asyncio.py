"""The client that most comparisons use: asyncio streams, a task a connection. For `loadgen_bench.py` only.

    python bench/loadgen_asyncio.py HOST PORT PATH CONNECTIONS SECONDS

Prints JSON: the requests that were answered with 200 and the seconds they took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time


async def client(host: str, port: int, path: str, until: float) -> int:
    """Ask again and again on one connection; the number of answers."""
    reader, writer = await asyncio.open_connection(host, port)
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    answers = 0
    while time.perf_counter() < until:
        writer.write(request)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        await reader.readexactly(int(headers["content-length"]))
        answers += status.split()[1] == "200"
    writer.close()
    return answers


async def run(host: str, port: int, path: str, connections: int, seconds: float) -> dict[str, float]:
    """The sum over all connections."""
    began = time.perf_counter()
    counts = await asyncio.gather(*(client(host, port, path, began + seconds) for _ in range(connections)))
    return {"requests": sum(counts), "elapsed_s": time.perf_counter() - began}


if __name__ == "__main__":
    host, port, path, connections, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(run(host, int(port), path, int(connections), float(seconds)))))
