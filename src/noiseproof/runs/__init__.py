"""What a run is, without torch: as a user gives it, and resolved to what will be trained.

>>> from noiseproof.runs import Run
>>> run = Run(dataset="cifar10", rate=0.8, loss="nce+rce").resolve(on_gpu=True)
>>> run.loss, run.model, run.epochs, run.weight_decay, run.precision
('nce + rce(A=-4)', 'cnn8', 120, 0.0001, 'bf16')
"""

from ._check import CHOICES
from ._penalty import l1_of_shrink, shrink_of_l1
from ._resolved import ResolvedRun, check_name, hash_of
from ._run import Run
from ._schedules import SCHEDULES

__all__ = [
    "CHOICES",
    "SCHEDULES",
    "ResolvedRun",
    "Run",
    "check_name",
    "hash_of",
    "l1_of_shrink",
    "shrink_of_l1",
]
