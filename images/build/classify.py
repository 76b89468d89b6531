"""What the log of a failed install means: one table of rules over the output of pip, apt, apk and the compilers."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Not an outcome of the server: the network or the index failed, and the same build may succeed later.
TROUBLE = "trouble"


@dataclass(frozen=True)
class Failure:
    """`kind` is one of RULES' kinds, `timeout`, or TROUBLE; `line` the line of the log that says so, without URLs."""

    kind: str
    line: str


# The first rule that matches any line decides: causes stand above the errors that follow from them. A cargo that
# cannot reach its index is trouble; a Rust toolchain that a build back end (by httpx) could not fetch was missing here.
RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.MULTILINE))
    for kind, pattern in (
        ("no_package_manager", r"^no package manager "),
        ("no_system_package", r"^E: Unable to locate package|has no installation candidate|\(no such package\)"),
        (
            TROUBLE,
            r"Temporary failure resolving"
            r"|^E: (Failed to fetch|Some index files failed|Unable to fetch|Release file|The repository)"
            r"|^WARNING: (fetching|updating) .*(error|DNS|timed out)|Could not fetch URL|Retry\(total=0,"
            r"|Max retries exceeded|Read timed out|(incomplete-download|network-error)$|HTTP error 5\d\d"
            r"|\[CERTIFICATE_VERIFY_FAILED\]|^\s*\[\d+\] (Could|Timeout|SSL)",
        ),
        ("conflict", r"conflicting dependencies|ResolutionImpossible"),
        (
            "wrong_python",  # pip lists all releases that it passed over: only the one that was asked for counts
            r"require a different python version: .*?\b(\S+) Requires-Python .*\n.*requirement \S+==\1 "
            r"|require a different python version: .*\n.*requirement [^=\s]+ |requires a different Python: ",
        ),
        (
            "no_compiler",
            r"No such file or directory: '[^' \n]*(gcc|g\+\+|clang|cc|c\+\+)'"
            r"|'[^' \n]*(gcc|g\+\+|clang|cc)' failed: No such file"
            r"|no acceptable C compiler|[Nn]eed a C compiler|Unknown compiler\(s\)|No CMAKE_C(XX)?_COMPILER"
            r"|linker `\w+` not found|can't find Rust compiler|Rust package manager, is not installed|httpx\.\w*Error"
            r"|make: (gcc|cc|g\+\+): No such file",
        ),
        ("missing_header", r"fatal error: '?[\w./+-]+\.h(pp)?'?( file not found|: No such file)"),
        (
            "missing_library",
            r"cannot find -l|unable to find (dynamic system )?library '?-?l?|'apxs' command appears not|"
            r"Dependency \"?[\w.+-]+\"? not found|Package '?[\w.+-]+'?,? (was )?not found|No package '[\w.+-]+' found",
        ),
        ("no_wheel", r"No matching distribution found|Could not find a version that satisfies"),
        ("build_error", r":\d+(:\d+)?: error: |^\s*error(\[E\d+\])?: (?!subprocess-exited|metadata-gen|failed-wheel)"),
        ("build_error", r"^\s*(\w+\.)*\w*(Error|Exception): "),
        ("build_error", r"^\s*(ERROR|E|error): "),
    )
)
URL = re.compile(r"\b\w+://[^\s'\")]+")


def classify(log: str) -> Failure:
    """Kind and first meaningful line of a failed step's log; `build_error` and the last line where no rule applies."""
    # A traceback quotes the `raise` above the message that it raised.
    lines = [line for line in log.splitlines() if line.strip() and not line.lstrip().startswith("raise ")]
    text = "\n".join(lines)
    for kind, pattern in RULES:
        if match := pattern.search(text):
            return Failure(kind, tidy(text[text.rfind("\n", 0, match.start() + 1) + 1 :].split("\n", 1)[0]))
    return Failure("build_error", tidy(lines[-1]) if lines else "no output")


def tidy(line: str) -> str:
    """A line fit for a record: no indentation, no URL (it would name the host's index), at most 300 characters."""
    return URL.sub("<url>", line.strip())[:300]
