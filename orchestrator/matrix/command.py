"""A launch command, or a part of one, as a shell reads it, though no shell runs it."""

from __future__ import annotations

import re

from orchestrator.matrix.mistake import WrongText

_BREAK = r"(?:\r\n?|\n)"
_PIECE = re.compile(
    rf"(?P<gap>(?:\\{_BREAK}|[ \t\r\n])+)|(?P<single>'[^']*')|(?P<double>\"(?:\\.|[^\"\\])*\")|(?P<escaped>\\.)", re.S
)
_WITHIN = re.compile(rf"\\{_BREAK}|(\\.)", re.S)
_VARIABLE = re.compile(r"\$[\w{(]|`")
_OPERATOR = re.compile(r"\d*[<>]\S*|&>\S*|[|&;]{1,2}|\S+;|[()]|#\S*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def without_null_byte(text: str) -> str:
    """`text`, which is to be an argument or a variable of a process. Raises WrongText where it cannot."""
    if "\0" in text:
        raise WrongText(f"{text[:60]!r} holds a null byte, which no process can be given", next_step="leave it out")
    return text


def one_line(text: str) -> str:
    """The same command in one line: a backslash before a line break continues the line, as in a shell, and any other
    break between words is a blank. Raises WrongText for a null byte.
    """
    without_null_byte(text)

    def written(piece: re.Match[str]) -> str:
        if piece["gap"]:
            at_the_edge = piece.start() == 0 or piece.end() == len(text)
            return "" if at_the_edge or not _WITHIN.sub("", piece["gap"]) else " "
        return piece[0] if piece["single"] else _WITHIN.sub(lambda found: found[1] or "", piece[0])

    return _PIECE.sub(written, text)


def shell_mistake(command: str, *, begins: bool) -> tuple[str, str] | None:
    """A word outside quotes that only a shell would understand, and what to do instead; None where there is none.

    `command` is one line; `begins`: with the name of the program, before which a shell takes assignments.
    """
    bare = _PIECE.sub(lambda piece: " " if piece["gap"] else "''", command).split(" ")
    if begins and _ASSIGNMENT.match(bare[0]):
        return bare[0], "set it under env: {NAME: value}"
    for word in bare:
        if _VARIABLE.search(word):
            return word, "write the value itself, or quote it with '…' where it is meant literally"
        if _OPERATOR.fullmatch(word):
            return word, "write one command, and quote with '…' what is meant literally; sh -c 'exec …' starts a shell"
    return None
