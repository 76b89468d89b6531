"""A server that answers after SERVICE_S, except that it stalls: a part of every period it answers nothing.

    python stalling.py BEGIN_NS

The periods count from BEGIN_NS on the system-wide monotonic clock; a request that comes during a stall has
its answer SERVICE_S after the stall's end. Prints its port, and at the end of its input the times of its
answers in seconds since BEGIN_NS, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

SERVICE_S, PERIOD_S, STALL_AT_S, STALL_S = 0.05, 1.25, 0.5, 0.25
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def latency_s(since_begin: float) -> float:
    """What the answer to a request takes that comes then, on a machine that is never late."""
    into_stall = (since_begin % PERIOD_S) - STALL_AT_S
    return SERVICE_S + (STALL_S - into_stall if 0 <= into_stall < STALL_S else 0)


async def main(begin: float) -> None:
    answered: list[float] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):  # one request: the client sends none before the answer
            came = time.perf_counter()
            await asyncio.sleep(came + latency_s(came - begin) - time.perf_counter())
            writer.write(ANSWER)
            answered.append(time.perf_counter() - begin)

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps(answered), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) / 1e9))
