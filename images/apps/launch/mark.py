"""Become another command, and say when: `python mark.py COMMAND …`.

One line of JSON on standard error just before exec(3): CLOCK_MONOTONIC, and the CPU that this process has used, both
in ns. The process stays the same one, so it is the server that is PID 1 of a container.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

if __name__ == "__main__":
    # What this interpreter ignores, the command would ignore too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    sys.stderr.write(json.dumps({"mark_ns": time.monotonic_ns(), "cpu_ns": time.process_time_ns()}) + "\n")
    sys.stderr.flush()
    os.execvp(sys.argv[1], sys.argv[1:])
