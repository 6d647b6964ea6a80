"""noiseproof in Hugging Face's Trainer: a loss as its ``compute_loss_func``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .._errors import UsageError, UsageTypeError
from ..losses import Loss, parse

__all__ = ["compute_loss"]


def compute_loss(loss: str | Loss, *, shift: bool | None = None) -> Callable[..., Tensor]:
    """A loss as the ``compute_loss_func`` of ``transformers.Trainer``.

        Trainer(..., compute_loss_func=compute_loss("nce + rce"))

    The sum over all labels is divided by ``num_items_in_batch``, the number of labels in all
    batches of a step, so that the gradient is the same however the step is cut into batches. With
    class weights too it is divided by the number of labels, not by the sum of their weights.

    Args:
        loss: a loss, or its text. Its ``ignore_index``, ``weight`` and ``label_smoothing`` hold;
            the Trainer's ``label_smoothing_factor`` does not.
        shift: whether the logits of a token predict the label of the next one. Default: by the
            type of the model's outputs, yes for a ``CausalLMOutput`` and its kin. Logits of tokens
            in a tuple or a plain dictionary need it given.

    The classes are the last dimension of the logits, and the labels are class indices of the shape
    without it, or class probabilities of the shape of the logits. Logits of pixels, [N, K, h, w],
    are resized to the labels, [N, H, W], as transformers does.
    """
    criterion = parse(loss) if isinstance(loss, str) else loss
    if not isinstance(criterion, Loss):
        raise UsageTypeError(
            f"the loss must be a text or a noiseproof.Loss; it was {type(loss).__name__}"
        )
    if criterion.reduction != "mean":
        raise UsageError(
            f"the loss has reduction={criterion.reduction!r}, and the Trainer divides by the "
            "number of labels; leave it at 'mean'"
        )
    summed = Loss.of(criterion.expression, **{**criterion.keywords, "reduction": "sum"})
    return functools.partial(_mean_of_labels, summed, shift)  # unlike a closure it can be pickled


def _mean_of_labels(
    loss: Loss,
    shift: bool | None,
    outputs: Any,
    labels: Tensor | None,
    num_items_in_batch: Tensor | int | None = None,
) -> Tensor:
    if labels is None:
        raise UsageError(
            "the batch has no labels; name their column 'labels', and leave it in with "
            "TrainingArguments(remove_unused_columns=False) if the model does not take it"
        )
    logits = _logits(outputs)
    labels = labels.to(logits.device)
    logits, labels = _flat(logits, labels, _shifts(shift, outputs, logits), loss.ignore_index)
    total = loss.to(logits.device)(logits, labels)
    items = labels.ne(loss.ignore_index).sum()
    if num_items_in_batch is not None:
        # Under DataParallel the Trainer repeats the number for each device, and multiplies the loss
        # of all devices together by their number; hence the sum.
        items = torch.as_tensor(num_items_in_batch, device=total.device).sum()
    if labels.is_floating_point():
        items = items / logits.shape[1]  # class probabilities: K entries are one label
    return total / items.clamp(min=1)  # a step without labels is 0, not 0 / 0


def _logits(outputs: Any) -> Tensor:
    if isinstance(outputs, Mapping):
        logits, found = outputs.get("logits"), f"the keys {', '.join(outputs)}"
    elif isinstance(outputs, tuple | list):  # a loss of the model's own, a number, may come first
        tensors = (each for each in outputs if isinstance(each, Tensor) and each.dim() > 0)
        logits, found = next(tensors, None), f"a {type(outputs).__name__} without them"
    else:
        logits, found = outputs, type(outputs).__name__
    if not isinstance(logits, Tensor):
        raise UsageTypeError(
            f"the outputs of the model must have 'logits', a tensor; they had {found}. A fused "
            "loss (use_liger_kernel) does not compute them: switch it off"
        )
    return logits


# How transformers calls outputs with logits of tokens, and whether these predict the next label.
_SHIFTS = {"CausalLM": True, "MaskedLM": False, "Seq2SeqLM": False, "TokenClassifier": False}


def _shifts(shift: bool | None, outputs: Any, logits: Tensor) -> bool:
    if logits.dim() != 3:
        return False
    if shift is not None:
        return shift
    name = type(outputs).__name__
    for part, shifts in _SHIFTS.items():
        if part in name:
            return shifts
    raise UsageError(
        f"outputs of the type {name} do not tell whether a token predicts the label of the next "
        "one; give compute_loss(..., shift=True) for a causal language model, and shift=False for "
        "classes of tokens, masked tokens or an encoder with a decoder"
    )


def _flat(logits: Tensor, labels: Tensor, shift: bool, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Logits with the classes at dimension 1, and their labels."""
    if logits.dim() == 4 and labels.dim() == 3:  # pixels
        if logits.shape[2:] != labels.shape[1:]:
            logits = torch.nn.functional.interpolate(
                logits, size=labels.shape[1:], mode="bilinear", align_corners=False
            )
        return logits, labels
    probabilities = labels.is_floating_point() and labels.shape == logits.shape
    if not probabilities and labels.shape != logits.shape[:-1]:
        raise UsageError(
            f"for logits {list(logits.shape)} the labels are {list(logits.shape[:-1])}; "
            f"their shape was {list(labels.shape)}"
        )
    if shift and probabilities:
        raise UsageError("labels of the next token must be class indices, not probabilities")
    if shift:  # not the logits, which would be copied
        labels = torch.nn.functional.pad(labels[:, 1:], (0, 1), value=ignore_index)
    classes = logits.shape[-1]
    return logits.reshape(-1, classes), labels.reshape(-1, *[classes] * probabilities)
