"""`loadgen` and `python -m loadgen`."""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    """Dispatch on the first argument; the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["agent"]:
        from loadgen.agent import main as agent

        return agent()
    print("usage: loadgen agent")
    return 2


if __name__ == "__main__":
    sys.exit(main())
