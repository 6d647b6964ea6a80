"""Several processes that train one run together: torch's ranks, started by torchrun.

Every rank computes a part of each batch. The logits of all parts are brought together, so that
each rank has the loss of the whole batch, whatever its mean is over, and takes the gradient through
its own part of them: the sum over ranks is the gradient of the batch. The optimizer then does the
same everywhere.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _torchrun
from .._errors import LostRankError, UsageError

T = TypeVar("T")
_STEP = timedelta(minutes=1)  # that ranks wait for each other within an epoch
_SETUP = timedelta(hours=2)  # and until all have their data, or rank 0 has written and told


class Ranks:
    """The processes that train together; by default this one alone, for which nothing is sent.

    Args:
        rank: the number of this one, from 0.
        size: how many there are.
        group: torch's process group for tensors.
        control: that for other messages, on the CPU.
    """

    def __init__(
        self, rank: int = 0, size: int = 1, group: Any = None, control: Any = None
    ) -> None:
        self.rank = rank
        self.size = size
        self._group = group
        self._control = control

    def leave(self) -> None:
        """Give the groups up; nothing can be sent afterwards."""
        self._group = self._control = None

    @property
    def alone(self) -> bool:
        return self.size == 1

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which prints and writes."""
        return self.rank == 0

    def part(self, n: int) -> slice:
        """Of n samples those of this rank: as many as of any other, or one more or less.

        No part is of one sample, of which batch norm has no statistics: of a small batch the last
        ranks have nothing.

        >>> [Ranks(rank, 3).part(5) for rank in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 5, None)]
        """
        sharing = max(1, min(self.size, n // 2))
        at = (min(rank, sharing) * n // sharing for rank in (self.rank, self.rank + 1))
        return slice(*at)

    def sum_(self, *tensors: Tensor) -> None:
        """Replace tensors by their sums over the ranks."""
        for tensor in () if self.alone else tensors:
            if tensor.numel():
                with _reported():
                    dist.all_reduce(tensor, group=self._group)

    def gather(self, own: Tensor, part: slice, n: int) -> Tensor:
        """All n rows, of which this rank has a part; gradients are those of its own."""
        if self.alone:
            return own
        rows = own.new_zeros(n, *own.shape[1:])
        rows[part] = own.detach()
        self.sum_(rows)  # a row and zeros: exact
        return torch.cat([rows[: part.start], own, rows[part.stop :]])

    @torch.no_grad()
    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by those of rank 0."""
        for tensor in () if self.alone else tensors:
            if tensor.numel():
                sent = tensor.detach().contiguous()
                with _reported():
                    dist.broadcast(sent, 0, group=self._group)
                if sent.data_ptr() != tensor.data_ptr():
                    tensor.copy_(sent)

    @torch.no_grad()
    def average_(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by their means over the ranks."""
        found = [] if self.alone else list(tensors)
        if not found:
            return
        flat = torch.cat([tensor.flatten() for tensor in found])
        self.sum_(flat)
        flat /= self.size
        means = torch.split(flat, [t.numel() for t in found])
        for tensor, mean in zip(found, means, strict=True):
            tensor.copy_(mean.view_as(tensor))

    def from_first(self, value: T) -> T:
        """A value as rank 0 has it."""
        return self.on_first(lambda: value)

    def on_first(self, work: Callable[[], T]) -> T:
        """What rank 0 computes, for all ranks; its error is raised on all."""
        if self.alone:
            return work()
        sent: list[Any] = [None, None]
        if self.first:
            try:
                sent[0] = work()
            except Exception as error:
                self._broadcast([None, _portable(error, 0)])
                raise
        self._broadcast(sent)
        if sent[1] is not None:
            raise sent[1]
        return sent[0]  # type: ignore[no-any-return]

    def _broadcast(self, sent: list[Any]) -> None:
        with _reported():
            dist.broadcast_object_list(sent, 0, group=self._control)

    def together(self, work: Callable[[], T]) -> T:
        """What this rank computes; an error of any rank is raised on all."""
        if self.alone:
            return work()
        try:
            found = work()
        except Exception as error:
            self.gather_objects(_portable(error, self.rank))
            raise
        errors = [error for error in self.gather_objects(None) if error is not None]
        if errors:
            raise errors[0]
        return found

    def gather_objects(self, own: object) -> list[Any]:
        """What each rank gives, in their order."""
        if self.alone:
            return [own]
        found: list[Any] = [None] * self.size
        with _reported():
            dist.all_gather_object(found, own, group=self._control)
        return found


ALONE = Ranks()
_joined: tuple[Any, Ranks] | None = None  # the process group and the ranks of it


def join() -> Ranks:
    """The ranks that this process is one of; the first call waits until all are there."""
    global _joined
    if not dist.is_available():
        return ALONE
    if not dist.is_initialized():
        if _torchrun.place() is None:
            return ALONE
        on_gpu = torch.cuda.is_available() and dist.is_nccl_available()
        shared, rank, size = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
        store = _fresh(shared, rank, size)
        _torchrun.use(store)
        backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
        atexit.register(_leave)
    if dist.get_world_size() == 1:
        return ALONE
    if _joined is None or _joined[0] is not dist.group.WORLD:
        groups = (
            dist.new_group(backend=dist.get_backend_config(), timeout=_STEP),
            dist.new_group(backend="gloo", timeout=_SETUP),
        )
        _joined = dist.group.WORLD, Ranks(dist.get_rank(), dist.get_world_size(), *groups)
    return _joined[1]


def _fresh(store: Any, rank: int, size: int) -> Any:
    """A part of the store that no earlier start of the ranks has written to.

    torchrun's agent keeps its store when it starts ranks again, and in it the addresses of those
    that are gone; and the starts that it counts are those on its machine. So rank 0 names a part,
    and others take its word when it has heard of them as they are now.
    """
    own = secrets.token_hex(8)
    until = time.monotonic() + _SETUP.total_seconds()
    store.set(f"hello {rank}", own)
    while rank and time.monotonic() < until:
        name, heard = json.loads(store.get("welcome"))
        if own in heard:
            store.set(f"{name} {rank}", "")
            return dist.PrefixStore(name, store)  # type: ignore[attr-defined]
        time.sleep(0.02)
    while time.monotonic() < until:
        heard = [store.get(f"hello {other}").decode() for other in range(size)]
        store.set("welcome", json.dumps([own, heard]))
        if store.check([f"{own} {other}" for other in range(1, size)]):
            return dist.PrefixStore(own, store)  # type: ignore[attr-defined]
        time.sleep(0.02)
    raise LostRankError(f"not all of the {size} ranks were started")


def _leave() -> None:
    """Let go of all groups while Python is whole: their threads abort a process that is not."""
    global _joined
    with contextlib.suppress(Exception):
        if _joined is not None:
            _joined[1].leave()
            _joined = None
        _torchrun.use(None)
        dist.destroy_process_group()
        gc.collect()


def local_gpu(name: str) -> torch.device:
    """The GPU of this rank, of those on its machine."""
    here = _torchrun.place()
    if here is None:
        return torch.device(name)
    if name != "cuda":
        raise UsageError(
            f"device {name!r} is one GPU, and {here.size} ranks take one each: give --device cuda"
        )
    count = torch.cuda.device_count()
    if here.local_rank >= count:
        raise UsageError(
            f"this machine has {count} GPU{'s' * (count != 1)} and more ranks than that: give "
            f"--nproc-per-node {count} to torchrun, or --device cpu"
        )
    return torch.device("cuda", here.local_rank)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """What torch raises when another rank is gone, in words."""
    try:
        yield
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise LostRankError(
            f"another rank has ended or does not answer; its own error says why ({reason:.200})"
        ) from error


def _portable(error: Exception, rank: int) -> Exception:
    """An error as the other ranks raise it."""
    if isinstance(error, UsageError):
        return UsageError(str(error))
    reason = " ".join(str(error).split())
    return LostRankError(f"rank {rank} ended with {type(error).__name__}: {reason:.200}")
