"""One step of the real Trainer on all ranks of torchrun; saves what it adds to the weights.

torchrun --nproc-per-node 2 ranks.py    # writes 2.pt
"""

from __future__ import annotations

import os

import torch


def main() -> None:
    from alone import mend_torchvision

    mend_torchvision()
    import steps

    torch.set_default_dtype(torch.float64)
    ranks = int(os.environ["WORLD_SIZE"])
    added = steps.change(steps.models()["causal"], "nce + rce", steps.N // ranks // 2, batches=2)
    if os.environ["RANK"] == "0":
        torch.save(added, f"{ranks}.pt")


if __name__ == "__main__":
    main()
