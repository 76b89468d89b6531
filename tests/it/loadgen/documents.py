"""What goes into the load generator and comes out, as plain JSON: as somebody sees it who has no types."""

from __future__ import annotations

import json
from typing import Any

from loadgen import agent
from loadgen.contract import LoadSpec, encode
from loadgen.run import load
from loadgen.spec import read_spec

Json = dict[str, Any]


def ask(**question: Any) -> Json:
    """The agent's answer."""
    answer: Json = json.loads(encode(agent.answer(json.dumps(question))))
    return answer


def loaded(spec: LoadSpec) -> Json:
    """The result of a slice."""
    result: Json = json.loads(encode(load(spec)))
    return result


def load_document(document: Json) -> Json:
    """The same of a spec in JSON."""
    return loaded(read_spec(document))
