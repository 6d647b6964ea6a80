"""A few training images with a wrong label, and what the trained network says of them."""

from __future__ import annotations

import base64
import math

import torch
from torch import Tensor

from .._png import png
from .._seeds import derive
from ..results import MAX_EXAMPLES, MAX_NAME, Example, Folder, write_examples
from ._measure import output_names
from ._trainer import RunTrainer

_MAX_SIZE = 64  # pixels a side: of larger images every second, third, ... pixel is kept


def keep_examples(trainer: RunTrainer, tensors: dict[str, Tensor] | None, folder: Folder) -> None:
    """Write the examples of a run that has ended; nothing if it has none or no images.

    ``tensors`` are the weights that it ends with, and None those that its network has.
    """
    if found := make_examples(trainer, tensors):
        write_examples(folder, found)


@torch.no_grad()
def make_examples(trainer: RunTrainer, tensors: dict[str, Tensor] | None) -> list[Example]:
    """Images whose label is wrong, drawn by the seed: the same for every loss."""
    inputs, given, true = trainer.loader.inputs, trainer.loader.labels, trainer.clean
    is_picture = inputs.dtype == torch.uint8 and inputs.ndim == 4 and inputs.shape[1] in (1, 3)
    if true is None or not is_picture:
        return []
    wrong = (given != true).nonzero().flatten().cpu()
    generator = torch.Generator().manual_seed(derive(trainer.run.seed, "examples"))
    index = wrong[torch.randperm(len(wrong), generator=generator)[:MAX_EXAMPLES]].sort().values
    if not len(index):
        return []
    at = index.to(inputs.device)
    images = inputs[at]
    logits = trainer._eval_logits(tensors, images)
    probabilities, predicted = logits.float().softmax(1).max(1)
    if not probabilities.isfinite().all():
        return []
    step = math.ceil(max(images.shape[2:]) / _MAX_SIZE)
    pixels = images[:, :, ::step, ::step].permute(0, 2, 3, 1).cpu().numpy()
    names = output_names(trainer.inputs.classes, logits.shape[1])
    classes = [name[:MAX_NAME] for name in names]
    return [
        Example(i, classes[g], classes[t], classes[p], q, base64.b64encode(png(image)).decode())
        for i, g, t, p, q, image in zip(
            index.tolist(), given[at].tolist(), true[at].tolist(), predicted.tolist(),
            probabilities.tolist(), pixels, strict=True,
        )
    ]  # fmt: skip
