"""Compile every kernel for a GPU, where there need not be one, and print their names.

Triton's interpreter, with which the other tests run kernels on a CPU, takes code that its compiler
does not. A program of its own, since Triton reads once whether it is to interpret.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
from typing import Any

import torch
import triton
from torch import nn
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from noiseproof import kernels

TARGET = GPUTarget("cuda", 90, 32)  # an H100 or H200
done: set[str] = set()


class Driver:
    """What Triton asks of a GPU before it compiles."""

    def get_current_target(self) -> GPUTarget:
        return TARGET

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int | None = None) -> int:
        return 0


def compile_only(run: Any) -> Any:
    """``JITFunction.run`` up to the launch."""

    def compiled(kernel: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        made = run(kernel, *args, grid=grid, warmup=True, **kwargs)
        assert f".entry {kernel.__name__}" in made.asm["ptx"]
        done.add(name_of(kernel))
        return made

    return compiled


def name_of(kernel: JITFunction) -> str:
    return f"{kernel.fn.__module__.rpartition('.')[2]}.{kernel.__name__}"


def all_kernels() -> set[str]:
    """Those that no other one calls."""
    found, called = {}, set()
    for module in pkgutil.iter_modules(kernels.__path__):
        if module.name.endswith("_kernels"):
            of = vars(importlib.import_module(f"{kernels.__name__}.{module.name}"))
            for function in of.values():
                if isinstance(function, JITFunction):
                    found[name_of(function)] = function
    for function in found.values():
        calls = (n for n in ast.walk(function.parse()) if isinstance(n, ast.Call))
        called |= {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    return {name for name, function in found.items() if function.__name__ not in called}


def updates() -> None:
    weights, low = torch.randn(96), torch.randn(64).bfloat16()
    lr, shrink = torch.ones(1), torch.ones(1)
    for some, clip, l1, decayed, by in [
        (low, 5.0, 0.0, None, None), (low, 0.0, 0.1, 64, shrink), (low[:0], 5.0, 0.0, None, shrink),
    ]:  # fmt: skip
        rest = torch.randn(len(weights) - len(some))
        common = (0.1, clip, l1, decayed, by)
        for nesterov in (False, True):
            kernels.sgd(weights, weights, some, rest, lr, some, 0.9, nesterov, *common)
        betas = (0.9, 0.999, 1e-8)
        kernels.adamw(weights, weights, weights, lr, some, rest, lr, some, *betas, *common)


def networks() -> None:
    pixels = torch.zeros(4, 3, 8, 8, dtype=torch.uint8).to(memory_format=torch.channels_last)
    three = torch.ones(3)
    for dtype in (torch.bfloat16, torch.float32):
        start = torch.zeros(1, dtype=torch.int64)
        kernels.normalized_batch(pixels, start, 4, three, three, dtype, 8)
        norm = nn.BatchNorm2d(8)
        for relu, add, pool in itertools.product((False, True), repeat=3):
            if pool and (add or not relu):
                continue
            y = torch.ones(4, 8, 8, 8, dtype=dtype, requires_grad=True)
            residual = y.detach() if add else None
            bias = three.new_ones(8) if pool else None
            for training in (True, False):
                norm.train(training)
                out = kernels.norm_relu(
                    y, norm, conv_bias=bias, relu=relu, residual=residual, pool=pool
                )
                if training:
                    out.sum().backward()


def main() -> None:
    triton.runtime.driver.set_active(Driver())
    JITFunction.run = compile_only(JITFunction.run)
    updates()
    networks()
    print(*sorted(done))
    if left := all_kernels() - done:
        raise SystemExit(f"not compiled: {', '.join(sorted(left))}")


if __name__ == "__main__":
    main()
