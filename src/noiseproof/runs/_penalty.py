"""An L1 penalty in the units of papers and in those of the schedule.

In the gradient, with momentum m, a penalty of weight ``l1`` moves a weight that nothing else moves
by ``l1 * sum(lr) / (1 - m)`` in a run. In units of the weights' mean size at the start that is
``shrink``: how many times over such a weight would be shrunk to zero.
"""

from __future__ import annotations


def shrink_of_l1(l1: float, *, lr_sum: float, mean_size: float, momentum: float = 0.0) -> float:
    """What ``shrink`` is to a weight of the L1 norm.

    Args:
        l1: the weight of the L1 norm in the loss.
        lr_sum: the learning rates of all steps, added up (`ResolvedRun.lr_sum`).
        mean_size: the mean absolute value of the matrices at the start.
        momentum: of SGD.

    >>> round(shrink_of_l1(5e-5, lr_sum=236.555, mean_size=0.02852, momentum=0.9), 1)
    4.1
    """
    return l1 * lr_sum / ((1 - momentum) * mean_size)


def l1_of_shrink(shrink: float, *, lr_sum: float, mean_size: float, momentum: float = 0.0) -> float:
    """The weight of the L1 norm that is to the gradient what ``shrink`` is to the schedule.

    >>> round(l1_of_shrink(4.1475, lr_sum=236.555, mean_size=0.02852, momentum=0.9), 7)
    5e-05
    """
    return shrink * mean_size * (1 - momentum) / lr_sum
