"""Texts as rows of token ids: hashed words and pairs of words. Nothing is learnt or downloaded."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PADDING = 0
# Marks that belong to the letter before them, which \w leaves out: accents, and vowels of Hebrew,
# Arabic and Indic script.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
# Scripts that put no spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese.
# Their characters, each with its marks, are taken for words.
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84\u0f90-\u0fbc"
    "\u102b-\u103e\u1056-\u1060\u17b4-\u17d3\u3099\u309a"
)
_WORD = re.compile(rf"(?=[{_UNSPACED}])\w[{_UNSPACED_MARKS}]*|(?:(?![{_UNSPACED}])\w[{_MARKS}]*)+")
_PLAIN = re.compile(r"\w+")  # the same for ASCII, and faster
_MOST = 512  # tokens of a text; what comes after is left out
_SHARE = 0.99  # of the texts that are kept whole


@dataclass(frozen=True)
class TextCoding:
    """How a text becomes token ids.

    Every word, in lower case, and every pair of neighbouring words has the id of its hash; each id
    is there once in a text. Where a script puts no spaces between words, as Chinese, the characters
    stand for them. Id 0 fills the row.

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


def _words(text: str) -> list[str]:
    """The words of a text, in lower case.

    >>> _words("Don't go"), _words("\u6211\u559c\u6b22 it")
    (['don', 't', 'go'], ['\u6211', '\u559c', '\u6b22', 'it'])
    """
    if text.isascii():
        return _PLAIN.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFC", text.lower()))


def _tokens(text: str, ngrams: int, buckets: int) -> list[int]:
    words = [word.encode(errors="replace") for word in _words(text)]
    hashes = [zlib.crc32(word) for word in words]
    found = list(hashes)
    for n in range(1, ngrams):  # of the words before, and a space and one more
        hashes = [zlib.crc32(b" " + word, h) for word, h in zip(words[n:], hashes, strict=False)]
        found += hashes
    return list(dict.fromkeys([1 + h % (buckets - 1) for h in found]))
