"""The device that a user names."""

from __future__ import annotations

import torch

from ._errors import UsageError


def named_device(name: str, remedy: str) -> torch.device:
    """A device that can be computed on here; auto is a GPU where there is one.

    Args:
        name: as torch calls it, or ``"auto"``.
        remedy: what to do where it cannot be had.

    >>> named_device("cpu", "")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise UsageError(f"unknown device {name!r}; give cpu, cuda, cuda:1 or auto") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device {name!r} was asked for, but torch sees no GPU; {remedy}")
    if device == torch.device("cuda"):
        return device  # ranks find out which
    try:
        torch.zeros(1, device=device).item()
    except Exception as error:  # of another kind for each device that is not there
        why = str(error).strip().split("\n")[0].split(". ")[0]
        raise UsageError(f"device {name!r} cannot be used here ({why:.200}); {remedy}") from None
    return device
