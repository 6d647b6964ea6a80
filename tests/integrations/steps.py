"""One step of the real Trainer for each kind of model, cut into batches in two ways.

Prints a line of JSON: of each kind of model, how far the changes of the weights are apart.
"""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import torch
from torch import Tensor

import noiseproof
from noiseproof.integrations.transformers import compute_loss

V, T, K, N = 32, 9, 5, 8  # words, tokens of a text, classes, samples of a step
WIDTHS = {
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "hidden_size": 8,
    "intermediate_size": 8,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
BERT = {"vocab_size": V, "max_position_embeddings": T, "num_labels": K, **WIDTHS, **NO_DROPOUT}
LLAMA = {"vocab_size": V, "pad_token_id": 0, **WIDTHS}
GPT2 = {
    "vocab_size": V, "n_positions": T, "n_embd": 8, "n_layer": 1, "n_head": 2, "resid_pdrop": 0.0,
    "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
T5 = {
    "vocab_size": V, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2,
    "dropout_rate": 0.0, "decoder_start_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
VIT = {
    "image_size": 8, "patch_size": 4, "num_channels": 1, "num_labels": K, **WIDTHS, **NO_DROPOUT,
}  # fmt: skip
SEGFORMER = {
    "num_encoder_blocks": 1, "depths": [1], "sr_ratios": [1], "hidden_sizes": [8],
    "patch_sizes": [3], "strides": [2], "num_attention_heads": [1], "mlp_ratios": [1],
    "decoder_hidden_size": 8, "num_labels": K, "num_channels": 1, "drop_path_rate": 0.0,
    "classifier_dropout_prob": 0.0, "semantic_loss_ignore_index": -100, **NO_DROPOUT,
}  # fmt: skip


def with_ignored(labels: Tensor) -> Tensor:
    """Of every sample another number of labels is ignored, at the beginning and at the end."""
    labels = labels.clone()
    for i, row in enumerate(labels):
        row[: i % 5] = -100
        row[len(row) - i % 3 :] = -100
    return labels


def models() -> dict[str, tuple[Any, ...]]:
    """Of each kind of model its configuration, its class, inputs, labels, and ``shift``."""
    import transformers as hf

    class TupleGPT2(hf.GPT2LMHeadModel):
        def forward(self, input_ids, labels=None, **rest):
            return super().forward(input_ids, labels=labels, **rest).to_tuple()

    generator = torch.Generator().manual_seed(0)

    def integers(high, *shape):
        return torch.randint(high, shape, generator=generator)

    bert, classes = hf.BertConfig(**BERT), integers(K, N)
    words = integers(V, N, T)
    masked, soft = with_ignored(integers(V, N, T)), torch.rand(N, K, generator=generator).softmax(1)
    text, pair = {"input_ids": words}, {"input_ids": words, "decoder_input_ids": integers(V, N, T)}
    image = {"pixel_values": torch.rand(N, 1, 8, 8, generator=generator)}
    pixels = with_ignored(integers(K, N, 8, 8))
    tuples = hf.BertConfig(**BERT, return_dict=False)
    tagged = with_ignored(integers(K, N, T))
    sequence = hf.BertForSequenceClassification
    t5, segformer = hf.T5Config(**T5), hf.SegformerConfig(**SEGFORMER)
    return {
        "sequence classification": (bert, sequence, text, classes, None),
        "soft labels": (bert, sequence, text, soft, None),
        "token classification": (bert, hf.BertForTokenClassification, text, tagged, None),
        "masked tokens": (bert, hf.BertForMaskedLM, text, masked, None),
        "causal": (hf.LlamaConfig(**LLAMA), hf.LlamaForCausalLM, text, with_ignored(words), None),
        "encoder and decoder": (t5, hf.T5ForConditionalGeneration, pair, masked, None),
        "images": (hf.ViTConfig(**VIT), hf.ViTForImageClassification, image, classes, None),
        "pixels": (segformer, hf.SegformerForSemanticSegmentation, image, pixels, None),
        "tuple": (tuples, sequence, text, classes, None),
        "tuple of tokens": (hf.GPT2Config(**GPT2), TupleGPT2, text, with_ignored(words), True),
    }


def change(model: tuple[Any, ...], loss: Any, batch_size: int, batches: int = 0) -> Tensor:
    """What one step of SGD adds to the weights, after so many batches, or after N samples.

    ``loss`` None is the model's own.
    """
    from transformers import Trainer, TrainingArguments

    config, model_class, inputs, labels, shift = model
    torch.manual_seed(0)
    network = model_class(config)
    for module in network.modules():  # the mean of a batch is another one for each cut
        if isinstance(module, torch.nn.BatchNorm2d):
            module.forward = lambda x: x
    before = torch.cat([p.detach().flatten().clone() for p in network.parameters()])
    samples = [
        {**{name: each[i] for name, each in inputs.items()}, "labels": labels[i]} for i in range(N)
    ]
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=batch_size,
        gradient_accumulation_steps=batches or N // batch_size, max_steps=1, optim="sgd",
        learning_rate=1.0, lr_scheduler_type="constant", max_grad_norm=0.0, use_cpu=True,
        report_to="none", disable_tqdm=True, save_strategy="no",
    )  # fmt: skip

    def compute(outputs, labels, num_items_in_batch=None):
        own = outputs.get("loss") if isinstance(outputs, dict) else None
        assert own is None  # the model must not compute its own loss besides
        return compute_loss(loss, shift=shift)(outputs, labels, num_items_in_batch)

    function = None if loss is None else compute
    trainer = Trainer(network, arguments, train_dataset=samples, compute_loss_func=function)
    with mock.patch.object(Trainer, "log"):
        trainer.train()
    after = torch.cat([p.detach().flatten() for p in network.parameters()])
    assert not torch.equal(before, after)
    return after - before


def distance(a: Tensor, b: Tensor) -> float:
    return ((a - b).abs().max() / b.abs().max()).item()


def main() -> None:
    import transformers

    transformers.utils.logging.set_verbosity_error()
    torch.set_default_dtype(torch.float64)  # so that what differs is a mistake and not rounding
    results = {}
    for kind, model in models().items():
        whole = change(model, "nce + rce", N)
        result = {"accumulated": distance(change(model, "nce + rce", 2), whole)}
        if kind != "soft labels":  # which transformers takes for several labels a sample
            result["cross entropy"] = distance(change(model, "ce", N), change(model, None, N))
        if kind == "sequence classification":
            weighted = noiseproof.parse("nce + rce", weight=torch.arange(1.0, K + 1))
            result["weighted"] = distance(change(model, weighted, 2), change(model, weighted, N))
        results[kind] = result
    print(json.dumps(results))


if __name__ == "__main__":
    main()
