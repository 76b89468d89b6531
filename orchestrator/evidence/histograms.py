"""The latency histograms of many slices as one text: sparse counts, packed together.

An HDR histogram has a count for each of 24,000 or so intervals of time, most of them 0 (LOWEST_US to HIGHEST_US with
DIGITS significant figures). Written are the intervals that any of the histograms counts in, as gaps, then each
histogram's counts in them: variable-length integers (LEB128), LZMA, and base85 (RFC 1924), which JSON need not escape.
"""

from __future__ import annotations

import base64
import lzma
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

LOWEST_US, HIGHEST_US, DIGITS = 1, 60_000_000, 3
Counts = npt.NDArray[np.int64]
_FILTERS = [{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16, "lc": 4, "lp": 0, "pb": 0}]


@lru_cache(maxsize=256)
def pack(texts: tuple[str, ...]) -> str:
    """One text of many histograms, each an HDR V2 histogram, compressed, in base64.

    Remembered, since a record is written twice after each round: before it is judged, and after.
    """
    counts = np.stack([decoded(text) for text in texts])
    used = np.flatnonzero(counts.any(axis=0))
    numbers = np.concatenate([np.diff(used, prepend=0), counts[:, used].ravel()])
    raw = lzma.compress(_varints(np.append(len(used), numbers)), lzma.FORMAT_RAW, filters=_FILTERS)
    return base64.b85encode(raw).decode("ascii")


def unpack(packed: str, number: int) -> list[str]:
    """The histograms again. Raises ValueError where the text does not hold so many."""
    try:
        raw = lzma.decompress(base64.b85decode(packed), lzma.FORMAT_RAW, filters=_FILTERS)
    except lzma.LZMAError as error:
        raise ValueError(f"the packed histograms are damaged: {error}") from None
    numbers = _numbers(raw)
    width = int(numbers[0]) if len(numbers) else -1
    if len(numbers) != 1 + width * (number + 1):
        raise ValueError(f"the packed histograms are not {number}")
    used = np.cumsum(numbers[1 : width + 1])
    return [encoded(used, counts) for counts in numbers[width + 1 :].reshape(number, width)]


def decoded(text: str) -> Counts:
    """How often each interval was counted."""
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    histogram.decode_and_add(text)
    return np.ctypeslib.as_array(histogram.counts).astype(np.int64)


def encoded(used: Counts, counts: Counts) -> str:
    """The histogram that has these counts in the intervals `used`, as the load generator writes it."""
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    if counts.any():
        np.ctypeslib.as_array(histogram.counts)[used] = counts
        histogram.total_count = int(counts.sum())
        histogram.max_value = histogram.get_value_from_index(int(used[counts > 0][-1]))
    return str(histogram.encode().decode("ascii"))


def _varints(numbers: Counts) -> bytes:
    """Seven bits in each byte, the lowest first; the eighth says that more follow."""
    left = numbers.astype(np.uint64)
    width = max(1, -(-int(left.max(initial=0)).bit_length() // 7))
    shifted = left[:, None] >> (np.arange(width, dtype=np.uint64) * np.uint64(7))
    written = (shifted > 0) | (np.arange(width) == 0)
    more = np.pad(written[:, 1:], ((0, 0), (0, 1)))
    return bytes(((shifted & np.uint64(127)) | (more.astype(np.uint64) << np.uint64(7))).astype(np.uint8)[written])


def _numbers(raw: bytes) -> Counts:
    data = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(data < 128)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    place = np.arange(len(data)) - np.repeat(starts, ends - starts + 1) if len(ends) else np.arange(0)
    parts = (data[: len(place)].astype(np.int64) & 127) << (7 * place)
    return np.add.reduceat(parts, starts) if len(ends) else parts
