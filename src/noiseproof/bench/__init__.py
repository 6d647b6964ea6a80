"""Benches: the paper's tables and figures as data, and what runs them, here or on a cluster.

>>> from noiseproof import bench
>>> quick = bench.bench("quick").narrow(loss=["ce", "nce"], seeds=[0])
>>> len(quick)
4

``bench.run(quick, "runs")`` trains what is not in that folder yet. To describe a bench torch is not
imported.
"""

from ._bench import Bench, comparison, grid
from ._benches import bench, names
from ._plan import Plan, plan
from ._run import Outcome, run
from ._toml import read_bench
from ._work import RunEvent

__all__ = [
    "Bench",
    "Outcome",
    "Plan",
    "RunEvent",
    "bench",
    "comparison",
    "grid",
    "names",
    "plan",
    "read_bench",
    "run",
]
