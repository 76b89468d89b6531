"""Numbers and words as readers see them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.figures import Estimate
from orchestrator.layout.text import count, interval, listed, plain, scaled, short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.000123, "0.00012"), (0.0321, "0.032"), (0.08, "0.080"), (0.0996, "0.10"), (0.85, "0.85"),
        (9.994, "9.99"), (9.996, "10.0"), (99.94, "99.9"), (99.96, "100"), (999.4, "999"), (999.6, "1.00k"),
        (12345, "12.3k"), (99_960, "100k"), (999_600, "1.00M"), (2.5e9, "2.50G"),
    ],
)  # fmt: skip
def test_three_figures(value: float, text: str) -> None:
    assert short(value) == text


@given(st.floats(1e-3, 9.99e11), st.floats(1.02, 10))
def test_printed_figures_keep_the_order(value: float, factor: float) -> None:
    def read(text: str) -> float:
        unit = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1])
        return float(text[:-1]) * unit if unit else float(text)

    assert read(short(value)) <= read(short(value * factor))
    assert read(short(value)) == pytest.approx(value, rel=0.06)


def test_interval_has_brackets_only_where_it_is_known() -> None:
    assert interval(Estimate(value=12_300, low=11_900, high=12_800), "≥") == "≥12.3k [11.9k, 12.8k]"
    assert interval(Estimate(value=12_300, low=None, high=None)) == "12.3k"


def test_what_is_not_known_is_a_dash() -> None:
    assert (scaled(None, 1e3), scaled(1_234, 1e3)) == ("—", "1.23")


def test_words() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert [count(1, "worker"), count(2, "worker")] == ["1 worker", "2 workers"]


def test_words_of_a_server_lose_colours_and_controls() -> None:
    assert plain("\x1b[31mERROR\x1b[0m:\n bad\x07 thing\u202e") == "ERROR: bad thing"


@given(st.text())
def test_plain_text_is_one_printable_line(text: str) -> None:
    assert not any(char in "\n\r\x1b\0" for char in plain(text))
    assert plain(plain(text)) == plain(text)
