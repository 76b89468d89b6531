"""A Docker socket that discards wishes without a word, as rootless engines do: LISTEN UPSTREAM, then the fields' names.

It passes all else on. `CpusetCpus` is a text, the others (`Memory`, `MemorySwap`, `PidsLimit`) are numbers.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path


def discarded(data: bytes, fields: list[str]) -> bytes:
    """The same of the same length, so that Content-Length stays true: empty text, or 0, and blanks."""
    for field in fields:
        text = re.compile(rb'("%b": )("[0-9,-]*"|[0-9]+)' % field.encode())
        data = text.sub(lambda m: m[1] + (b'""' if m[2][:1] == b'"' else b"0").ljust(len(m[2])), data)
    return data


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fields: list[str]) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(discarded(data, fields))
            await writer.drain()
        writer.write_eof()
    except (ConnectionError, OSError, RuntimeError):
        pass


async def main(listen: str, upstream: str, *fields: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(upstream)
        await asyncio.gather(pump(reader, up_writer, list(fields)), pump(up_reader, writer, []))
        writer.close()
        up_writer.close()

    Path(listen).unlink(missing_ok=True)
    async with await asyncio.start_unix_server(serve, listen) as server:
        print("ready", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
