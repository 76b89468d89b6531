"""Records as hypothesis draws them: any texts, any figures that the schema lets through."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from orchestrator.evidence.model import (
    CellPoint,
    ImageFacts,
    Outcome,
    Reason,
    Record,
    Summary,
    VerdictRecord,
)
from orchestrator.figures import Estimate, RatioBound
from orchestrator.judge.rules import Effect

NASTY = (
    "a|b", "=1+1", "-2", "@x", "a,b\r\nc", '"', "[x](y)", "<b>", "`c`", "$\\bad{$", "\x1b[31mred\x1b[0m",
    "[b]x[/b]", "__u__", "~~s~~",
)  # fmt: skip
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(NASTY)
FIGURES = st.floats(1e-6, 1e12)
MAYBE = st.none() | FIGURES


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    """Bounds in order where both are known; one round gives none."""
    low, value, high = sorted(draw(st.tuples(FIGURES, FIGURES, FIGURES)))
    return draw(
        st.sampled_from([Estimate(value=value, low=low, high=high), Estimate(value=value, low=None, high=None)])
    )


SUMMARIES = st.builds(
    Summary,
    slices=st.integers(1, 9), requests=st.integers(0), errors=st.integers(0),
    rps=estimates(), ratio=st.none() | estimates(), ratio_bound=st.sampled_from(get_args(RatioBound)),
    ceiling_share=MAYBE, between=MAYBE, within=MAYBE,
    latency_us=st.dictionaries(st.sampled_from(["p50", "p99", "mean"]), FIGURES),
    cpu_us_per_request=st.none() | estimates(), client_cpu_us_per_request=FIGURES,
    memory_bytes=st.none() | st.integers(0), memory_pss_bytes=st.none(), processes=st.none() | st.integers(0),
    connections_per_request=st.just(0.0) | FIGURES, ready_s=FIGURES,
)  # fmt: skip
VERDICTS = st.builds(
    VerdictRecord, rule=st.sampled_from(["errors", "client_bound", "mixed"]), effect=st.sampled_from(get_args(Effect)),
    text=TEXTS, cure=TEXTS, slices=st.integers(0, 9), of=st.integers(0, 9),
)  # fmt: skip
CELLS = st.builds(
    CellPoint, server=TEXTS, variant=TEXTS, flavour=st.sampled_from(["slim", "alpine"]),
    mode=st.sampled_from(["wheel", "sdist"]), python=st.sampled_from(["3.13", "3.14t"]), app=TEXTS,
    protocol=st.just("asgi"), workload=TEXTS, workers=st.integers(1, 4), threads=st.none() | st.integers(1, 4),
    tls=st.booleans(), connections=st.sampled_from([1, 32]),
)  # fmt: skip
IMAGES = st.builds(
    ImageFacts, reference=TEXTS, digest=TEXTS, architecture=TEXTS, base=TEXTS, base_digest=TEXTS,
    standin=st.sampled_from(["", "slim", "musl"]), base_note=TEXTS, versions=st.just({}), install=st.just({}),
)  # fmt: skip
RECORDS = st.builds(
    Record, id=TEXTS, suite=TEXTS, probe=st.just("load"), cell=CELLS, baseline=st.booleans(),
    outcome=st.sampled_from(get_args(Outcome)), reason=st.none() | st.builds(Reason, stage=TEXTS, line=TEXTS),
    note=TEXTS, declared=st.just({}), command=TEXTS, image=st.none() | IMAGES, rounds=st.just([]),
    summary=st.none() | SUMMARIES, verdicts=st.lists(VERDICTS, max_size=3), written=TEXTS,
)  # fmt: skip


def _one_comparison(records: list[Record]) -> list[Record]:
    first = records[0].cell
    same = {"workload": first.workload, "tls": first.tls, "connections": first.connections}
    return [record.model_copy(update={"cell": record.cell.model_copy(update=same)}) for record in records]


RUNS = st.lists(RECORDS, max_size=3, unique_by=lambda record: record.id)
COMPARISONS = st.lists(RECORDS, min_size=1, max_size=4, unique_by=lambda record: record.id).map(_one_comparison)
