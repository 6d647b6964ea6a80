"""Random numbers that are the same on every machine and with every version of NumPy.

NumPy guarantees the 64-bit words of a bit generator, but not what its distributions make of them,
so none of its distributions is used: a word is Philox4x64-10 of (seed, purpose, part, position),
and the rest is integer arithmetic.

Each purpose has its own stream, and in it each sample its own word: which samples are flipped
depends neither on their new classes nor on the other samples.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

Purpose = Literal["which", "where", "round", "spread", "rate", "project"]


def words(seed: int, purpose: Purpose, count: int, part: int = 0) -> Words:
    """The first ``count`` 64-bit words of the stream of a seed and a purpose."""
    key = np.array([seed, int.from_bytes(purpose.encode(), "little")], dtype=np.uint64)
    counter = np.array([0, 0, 0, part], dtype=np.uint64)
    return np.random.Philox(key=key, counter=counter).random_raw(count)


def uniform(drawn: Words) -> Floats:
    """Words as numbers in [0, 1), multiples of 2^-53."""
    return (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53


def integers_below(drawn: Words, bound: int) -> Integers:
    """Words as integers from 0 to ``bound - 1``, uniform up to a bias of bound / 2^32."""
    return ((drawn >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)


def normal(drawn: Words) -> Floats:
    """Words as standard normal numbers, by the quantile function."""
    return normal_quantile(_open_uniform(drawn))


def _open_uniform(drawn: Words) -> Floats:
    """Words as numbers in the open interval (0, 1)."""
    return ((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def normal_quantile(p: Floats) -> Floats:
    """The quantile function of the standard normal distribution, to seven digits.

    Wichura, Algorithm AS 241: The Percentage Points of the Normal Distribution, 1988 (PPND7). Its
    central part, 85 % of all draws, uses only operations that every machine rounds alike.
    """
    q = p - 0.5
    r = 0.180625 - q * q
    z = q * _ratio(
        r,
        (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
        (1.0, 17.895169469, 78.757757664, 67.187563600),
    )
    tail = np.abs(q) > 0.425
    q = q[tail]
    r = np.sqrt(-np.log(np.where(q < 0, p[tail], 1 - p[tail])))
    near = _ratio(
        r - 1.6,
        (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
        (1.0, 0.73700164250, 0.12021132975),
    )
    far = _ratio(
        r - 5,
        (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
        (1.0, 0.24197894225, 0.012258202635),
    )
    z[tail] = np.copysign(np.where(r <= 5, near, far), q)
    return z


def _ratio(r: Floats, numerator: tuple[float, ...], denominator: tuple[float, ...]) -> Floats:
    return _polynomial(r, numerator) / _polynomial(r, denominator)


def _polynomial(r: Floats, coefficients: tuple[float, ...]) -> Floats:
    value = np.full_like(r, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * r + coefficient
    return value


def truncated_normal(drawn: Words, mean: float, deviation: float) -> Floats:
    """Words as normal numbers truncated to [0, 1]."""
    low, high = (_normal_cdf((edge - mean) / deviation) for edge in (0.0, 1.0))
    p = low + (high - low) * _open_uniform(drawn)
    return np.clip(mean + deviation * normal_quantile(p), 0.0, 1.0)


def _normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))
