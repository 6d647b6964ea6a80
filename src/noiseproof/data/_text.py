"""Texts as rows of token ids: hashed words and pairs of words. Nothing is learnt or downloaded."""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PADDING = 0
_WORD = re.compile(r"\w+")
_MOST = 512  # tokens of a text; what comes after is left out
_SHARE = 0.99  # of the texts that are kept whole


@dataclass(frozen=True)
class TextCoding:
    """How a text becomes token ids.

    Every word, in lower case, and every pair of neighbouring words has the id of its hash; each id
    is there once in a text. Id 0 fills the row.

    Attributes:
        length: of a row; later tokens are left out.
        buckets: how many ids there are.
        ngrams: the largest number of neighbouring words that are taken together.
    """

    length: int
    buckets: int = 1 << 15
    ngrams: int = 2

    @classmethod
    def of(cls, texts: Sequence[str], buckets: int = 1 << 15, ngrams: int = 2) -> TextCoding:
        """The coding whose rows are long enough for nearly all of these texts."""
        lengths = sorted(len(_tokens(text, ngrams, buckets)) for text in texts)
        enough = lengths[min(len(lengths) - 1, int(_SHARE * len(lengths)))] if lengths else 1
        return cls(max(1, min(_MOST, enough)), buckets, ngrams)

    def __call__(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """Token ids [N, length].

        >>> TextCoding(length=4, buckets=100)(["Hello world", ""]).shape
        (2, 4)
        """
        rows = [_tokens(text, self.ngrams, self.buckets)[: self.length] for text in texts]
        ids = np.full((len(rows), self.length), PADDING, np.int64)
        for row, tokens in zip(ids, rows, strict=True):
            row[: len(tokens)] = tokens
        return ids


def _tokens(text: str, ngrams: int, buckets: int) -> list[int]:
    words = _WORD.findall(text.lower())
    found: dict[int, None] = {}
    for n in range(1, ngrams + 1):
        for start in range(len(words) - n + 1):
            found[_bucket(" ".join(words[start : start + n]), buckets)] = None
    return list(found)


@functools.lru_cache(maxsize=1 << 18)
def _bucket(token: str, buckets: int) -> int:
    return 1 + zlib.crc32(token.encode(errors="replace")) % (buckets - 1)
