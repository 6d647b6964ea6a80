"""Changes to sound input, drawn from a generator: of bytes, of texts, and of what JSON holds."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

VALUES: list[Any] = [
    None, True, False, 0, -1, 1 << 40, 1 << 70, -(1 << 70), 0.5, -0.0, 1e308, 1e999, -1e999,
    float("nan"), "", "nce", "nan", "1e9", "a\nb", "\x00", "\ud800", "é" * 300, "a" * 100_000,
    [], [[]], [None] * 3, {}, {"": {}}, {"a": [1, {"b": None}]}, [1e999] * 4, list(range(50)),
]  # fmt: skip


def change_bytes(rng: random.Random, content: bytes, tokens: Sequence[bytes]) -> bytes:
    """A few changes of the kinds that damage and malice make."""
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        if rng.random() < 0.5:  # near the start, where the structure is
            at, end = (min(i, rng.randrange(200)) for i in (at, end))
        match rng.randrange(7):
            case 0:
                content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
            case 1:
                content = content[:at] + rng.choice(tokens) + content[at:]
            case 2:
                token = rng.choice(tokens)
                content = content[:at] + token + content[at + len(token) :]
            case 3:
                content = content[:at] + content[max(at, end) :]
            case 4:
                piece = content[at : at + rng.randrange(1, 40)]
                content = content[:at] + piece * rng.choice((1, 2, 300)) + content[at:]
            case 5:
                content = content[:at] if rng.random() < 0.3 else content + content[at:end]
            case 6:
                number = rng.choice((0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 62))
                size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
                packed = (number % (1 << 8 * size)).to_bytes(size, order)
                content = content[:at] + packed + content[at + size :]
    return content[: 1 << 20]


def change_text(rng: random.Random, text: str, tokens: Sequence[str]) -> str:
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        match rng.randrange(5):
            case 0 | 1:
                text = text[:at] + rng.choice(tokens) + text[at:]
            case 2:
                token = rng.choice(tokens)
                text = text[:at] + token + text[at + len(token) :]
            case 3:
                text = text[:at] + text[min(end, at + rng.choice((1, 3, 30, 300))) :]
            case 4:
                piece = text[at : at + rng.randrange(1, 30)]
                text = text[:at] + piece * rng.choice((1, 2, 200)) + text[at:]
    return text[:20_000]


def change_value(rng: random.Random, value: Any) -> Any:
    """The same value with a few of its parts replaced, removed, renamed or nested."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        holder, key = _place(rng, value)
        if holder is None:
            return rng.choice(VALUES)
        match rng.randrange(5):
            case 0 | 1:
                holder[key] = copy.deepcopy(rng.choice(VALUES))
            case 2:
                del holder[key]
            case 3 if isinstance(holder, dict):
                holder[rng.choice((f"{key}x", "", "a\nb", "format", "loss"))] = holder.pop(key)
            case _:
                holder[key] = rng.choice(([holder[key]], {"a": holder[key]}, str(holder[key])))
    return value


def _place(rng: random.Random, value: Any) -> tuple[Any, Any]:
    """A container within the value, and a key of it; None if there is none."""
    holder, key = None, None
    while isinstance(value, dict | list) and value and (holder is None or rng.random() < 0.7):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, rng.choice(keys)
        value = holder[key]
    return holder, key
