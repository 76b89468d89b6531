"""Asks the index that pip is configured with, through pip itself: its options, its certificates, its proxy, its login.

Run as a program, by an interpreter that has pip, since these parts of pip are its own affair: `python -m
orchestrator.images.ask_pip NAME…` writes a JSON object: by project, the status, type and text of each index's answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

MEDIA_TYPE = "application/vnd.pypi.simple.v1+json"


def ask(names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Raises whatever pip's session raises where an index does not answer."""
    from pip._internal.commands import create_command

    command: Any = create_command("download")
    options, _ = command.parse_args([])
    indexes = [] if options.no_index else [options.index_url, *options.extra_index_urls]
    with command.main_context():
        session = command.get_default_session(options)
        return {name: [_answer(session, f"{index.rstrip('/')}/{name}/") for index in indexes] for name in names}


def _answer(session: Any, url: str) -> dict[str, Any]:
    answer = session.get(url, headers={"Accept": MEDIA_TYPE})
    return {"status": answer.status_code, "type": answer.headers.get("Content-Type", ""), "text": answer.text}


if __name__ == "__main__":
    json.dump(ask(sys.argv[1:]), sys.stdout)
