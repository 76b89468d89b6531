"""GitHub Markdown: for the README, for issues."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestrator.evidence.model import Record, RunFile
from orchestrator.layout.text import NONE, on_left, plain
from orchestrator.layout.text_table import TextTable
from orchestrator.report.conditions import LeftOut
from orchestrator.report.document import document
from orchestrator.report.pivot import Pivot
from orchestrator.report.table import COSTS, EFFECTS, Footnote, Table

_SPECIAL = re.compile(r"[\\`*|~$]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])")
SAYS = "What this table says"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render(run: RunFile, records: Sequence[Record]) -> str:
    """The whole report: what it rests on, the pivots, the tables, what is left out."""
    whole = document(run, records)
    head = [f"> [!WARNING]\n> **{escape(whole.banner)}**"] if whole.banner else []
    blocks = [
        *head,
        *(pivot(item) for item in whole.pivots),
        *(table(item) for item in whole.flats),
        *(table(item) for item in whole.tables),
        *(text_table(item) for item in whole.sheets),
        _warnings(whole.failures),
        _section("How to read the tables", [escape(note) for note in whole.notes]),
        _section("What the figures rest on", [escape(fact) for fact in whole.facts]),
        _section("Left out of the suite", [_left_out(item) for item in whole.left_out]),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def excerpt(run: RunFile, records: Sequence[Record]) -> str:
    """What a page needs: the run in the view of its suite, else its plain tables, else its tables."""
    whole = document(run, records)
    viewed = [*(pivot(item) for item in whole.pivots), *(table(item) for item in whole.flats)]
    return "\n\n".join(
        viewed or [text_table(item) for item in whole.sheets if not item.detail] or [*map(table, whole.tables)]
    )


def table(item: Table) -> str:
    """One comparison, with its warnings and conclusions."""
    rows = [row.texts for row in item.rows]
    missing = [(m.name, m.outcome, m.reason, m.marks) for m in item.missing]
    blocks = [
        f"### {escape(item.title)}",
        escape(f"{item.common[:1].upper()}{item.common[1:]}."),
        _warnings(item.warnings),
        grid(item.columns, rows) if rows else "",
        escape(item.note),
        _footnotes(item.footnotes),
        f"#### {COSTS}\n\n" + grid(item.costs.columns, item.costs.rows) if item.costs else "",
        _section(SAYS, [escape(line) for line in item.conclusions]),
        "#### Not measured\n\n" + grid(("cell", "outcome", "reason", "marks"), missing) if missing else "",
    ]
    return "\n\n".join(filter(None, blocks))


def pivot(item: Pivot) -> str:
    """Servers × the values of an axis, with the figures that its suite is read for."""
    rows = [(row.name, *(cell.text if cell else NONE for cell in row.cells)) for row in item.rows]
    blocks = [
        f"### {escape(item.title)}: {escape(item.told)}",
        escape(f"{item.common[:1].upper()}{item.common[1:]}. {item.note}"),
        _warnings(item.warnings),
        grid(("server", *item.headings), rows),
        _footnotes(item.footnotes),
        _section(SAYS, [escape(line) for line in item.conclusions]),
    ]
    return "\n\n".join(filter(None, blocks))


def text_table(item: TextTable) -> str:
    """A grid with its legend above and its reasons below, folded away: there may be many."""
    reasons = _section("", [escape(reason) for reason in item.reasons])
    blocks = [
        f"### {escape(item.title)}",
        escape(f"{item.common[:1].upper()}{item.common[1:]}."),
        " ".join(escape(line) for line in item.legend),
        grid(item.columns, item.rows),
        f"<details><summary>Reasons</summary>\n\n{reasons}\n\n</details>" if reasons else "",
    ]
    return "\n\n".join(filter(None, blocks))


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, aligned in its source too. Texts are escaped here."""
    texts = [[escape(text) for text in line] for line in (columns, *rows)]
    widths = [max(3, *(len(line[at]) for line in texts)) for at in range(len(columns))]
    left = [on_left(column) for column in columns]
    rule = ["-" * width if keep else "-" * (width - 1) + ":" for width, keep in zip(widths, left, strict=True)]
    padded = [
        [text.ljust(width) if keep else text.rjust(width) for text, width, keep in zip(line, widths, left, strict=True)]
        for line in texts
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (padded[0], rule, *padded[1:]))


def escape(text: str) -> str:
    """Text that GitHub shows as it is, on one line, in a table or outside: |, emphasis, code, links, HTML, math."""
    return "".join(_ENTITIES.get(char, char) for char in _SPECIAL.sub(r"\\\g<0>", plain(text)))


def _warnings(texts: Sequence[str]) -> str:
    return "\n".join(f"> **{escape(text)}**  " for text in texts)


def _footnotes(items: Sequence[Footnote]) -> str:
    return _section("", [_footnote(item) for item in items])


def _footnote(item: Footnote) -> str:
    effect = EFFECTS[item.effect]
    return f"**{item.letter}** `{item.rule}`, {effect}. {escape(item.seen)}. *Cure: {escape(item.cure)}.*"


def _left_out(item: LeftOut) -> str:
    return f"{escape(', '.join(item.names))}: {escape(item.why)}"


def _section(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return "\n".join(_lines(title, lines))


def _lines(title: str, lines: Sequence[str]) -> Iterator[str]:
    if title:
        yield f"#### {title}"
        yield ""
    for line in lines:
        yield f"- {line}"
