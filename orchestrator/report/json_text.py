"""JSON: the document as it is, raw summaries included, under the schema name `appserver-matrix/report/1`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from orchestrator.evidence.model import Record, RunFile
from orchestrator.report.document import Document, document

_ADAPTER = TypeAdapter(Document)


def render(run: RunFile, records: Sequence[Record]) -> str:
    """One object, ended by a newline. A banner that is not "" says that the figures are invented."""
    return _ADAPTER.dump_json(document(run, records), indent=1).decode() + "\n"
