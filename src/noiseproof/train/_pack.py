"""Epochs of one run or of several at once: step by step, or as CUDA graphs.

A batch of 128 small images fills a tenth of a large GPU, and launching its kernels takes longer
than running them. So on a GPU a step is captured once as a graph and replayed, and the steps of
several runs are parallel branches of one graph.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .._errors import UsageError
from ..models import MLP
from ._measure import EpochMetrics, to_host
from ._trainer import RunTrainer, forward

WARM_UP = 3  # runs before a capture, in which libraries choose their kernels


class Pack:
    """Runs whose epochs have the same number of steps, one step of each at a time."""

    def __init__(self, trainers: Sequence[RunTrainer]) -> None:
        self.trainers = list(trainers)
        first = self.trainers[0]
        self.size, self.batch, self.chunk = (
            len(first.loader.images), first.loader.batch_size, first.chunk
        )  # fmt: skip
        for t in self.trainers:
            if (len(t.loader.images), t.loader.batch_size, t.chunk) != (
                self.size, self.batch, self.chunk,
            ):  # fmt: skip
                raise UsageError("runs of a pack must have training sets and batches of one size")

    def train_epoch(self, epoch: int) -> list[EpochMetrics]:
        """Train an epoch of each run; what was measured, in the order of the runs."""
        on_gpu = self.trainers[0].loader.device.type == "cuda"
        devices = [torch.cuda.current_device()] if on_gpu else []
        with self.backend_flags(), torch.random.fork_rng(devices=devices):
            for t in self.trainers:
                t.begin_epoch(epoch)
                t.train_mode()
            seed = self.trainers[0].global_seed(epoch)
            torch.default_generator.manual_seed(seed)
            if on_gpu:
                torch.cuda.manual_seed(seed)
            for start in range(0, self.size, self.chunk):
                for t in self.trainers:
                    t.fill_chunk(start)
                whole, rest = divmod(min(self.chunk, self.size - start), self.batch)
                for _ in range(whole):
                    self.step(self.batch)
                if rest:
                    self.step(rest)
            return to_host(self.measure())

    def step(self, size: int) -> None:
        for t in self.trainers:
            t.step(size)

    def measure(self) -> list[dict[str, Tensor]]:
        return [t.measure() for t in self.trainers]

    @contextlib.contextmanager
    def backend_flags(self) -> Iterator[None]:
        """Set torch's global flags as the runs want them, and restore them in the end."""
        first = self.trainers[0]
        if first.loader.device.type != "cuda":
            # Layers this small are slower on several threads, and come to other last digits.
            threads = torch.get_num_threads()
            torch.set_num_threads(1 if isinstance(first.network, MLP) else threads)
            try:
                yield
            finally:
                torch.set_num_threads(threads)
            return
        deterministic = torch.backends.cudnn.deterministic  # as the user set it
        with contextlib.ExitStack() as stack:
            _set_flag(stack, torch.backends.cudnn, "enabled", True)
            _set_flag(stack, torch.backends.cudnn, "benchmark", not deterministic)
            set_tf32(stack, first.run.precision != "fp32")
            yield


def _set_flag(stack: contextlib.ExitStack, module: Any, name: str, value: object) -> None:
    stack.callback(setattr, module, name, getattr(module, name))
    setattr(module, name, value)


def set_tf32(stack: contextlib.ExitStack, use: bool) -> None:
    """Set whether float32 products may be rounded to TF32, until the stack is closed.

    Newer torch has another switch for it, and refuses the old one once a user has touched the new.
    """
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        _set_flag(stack, torch.backends.cuda.matmul, "fp32_precision", "tf32" if use else "ieee")
        convolutions = torch.backends.cudnn.conv  # type: ignore[attr-defined]
        _set_flag(stack, convolutions, "fp32_precision", "tf32" if use else "ieee")
    else:
        _set_flag(stack, torch.backends.cuda.matmul, "allow_tf32", use)
        _set_flag(stack, torch.backends.cudnn, "allow_tf32", use)


class GraphPack(Pack):
    """The same on a GPU, each step of all runs one replay of a graph.

    Args:
        trainers: the runs.
        compiled: whether the networks are compiled, which takes a while and then makes steps of
            networks faster that bring no kernels of their own. A short last batch is captured but
            not compiled.
    """

    def __init__(self, trainers: Sequence[RunTrainer], *, compiled: bool) -> None:
        super().__init__(trainers)
        self.compiled = compiled
        self._graphs: dict[object, tuple[torch.cuda.CUDAGraph, Any]] = {}
        self._streams = [_stream() for _ in self.trainers]

    def step(self, size: int) -> None:
        if size not in self._graphs:
            compiled = self.compiled and size == self.batch
            for t in self.trainers:
                t.forward = compiled_forward() if compiled else forward
            self._graphs[size] = self._capture(lambda t: t.step(size))
        self._graphs[size][0].replay()

    def measure(self) -> list[dict[str, Tensor]]:
        if any(t.evaluates_files for t in self.trainers):
            return super().measure()
        if "measure" not in self._graphs:
            self._graphs["measure"] = self._capture(RunTrainer.measure)
        graph, rows = self._graphs["measure"]
        graph.replay()
        return rows  # type: ignore[no-any-return]

    def _capture(self, work: Callable[[RunTrainer], Any]) -> tuple[torch.cuda.CUDAGraph, list[Any]]:
        """Capture the same work for each run, on a stream of its own, and undo its effects."""
        before = [[t.clone() for t in trainer.mutable_tensors()] for trainer in self.trainers]
        drawn = torch.cuda.get_rng_state()
        main = torch.cuda.current_stream()
        side = _stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                for trainer, saved in zip(self.trainers, before, strict=True):
                    work(trainer)
                    _restore(trainer, saved)
        main.wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        results = []
        with torch.cuda.graph(graph, stream=side):
            here = torch.cuda.current_stream()
            for trainer, stream in zip(self.trainers, self._streams, strict=True):
                stream.wait_stream(here)
                with torch.cuda.stream(stream):
                    results.append(work(trainer))
            for stream in self._streams:
                here.wait_stream(stream)
        # A capture begins by writing the generator's seed and offset, on its stream and not as part
        # of the graph: on a GPU that others keep busy that came after the first replay's own.
        main.wait_stream(side)
        torch.cuda.set_rng_state(drawn)
        return graph, results  # what is captured has not run


def _restore(trainer: RunTrainer, saved: Sequence[Tensor]) -> None:
    for tensor, value in zip(trainer.mutable_tensors(), saved, strict=True):
        tensor.copy_(value)


def _stream() -> torch.cuda.Stream:
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


@functools.cache
def compiled_forward() -> Callable[..., Tensor]:
    """Forward and backward passes as fused kernels, for networks that have none of their own."""
    import torch._dynamo

    torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
    # What the compiler remarks on (too few SMs, slow compilation) is of no use here.
    warnings.filterwarnings("ignore", module=r"torch\._(dynamo|inductor)")
    return torch.compile(forward, dynamic=False, options=_OPTIONS)


# Compute what is cheap again where it is needed, rather than write it to memory and read it back:
# a ReLU's gradient is wanted by two sums and by the gradient that passes through.
_OPTIONS: dict[str, str | int | bool | Callable[..., Any]] = {
    "realize_reads_threshold": 16,
    "realize_opcount_threshold": 200,
    "realize_acc_reads_threshold": 16,
}
