"""`loadgen` and `python -m loadgen`."""

from __future__ import annotations

import sys

from loadgen import agent, ceiling, cli, null

COMMANDS = {"agent": agent.main, "ceiling": ceiling.main, "null": null.main}


def main(argv: list[str] | None = None) -> int:
    """Run the command that the first argument names, or put load on the URL that it is; the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    command = COMMANDS.get(arguments[0]) if arguments else None
    return command(arguments[1:]) if command else cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
