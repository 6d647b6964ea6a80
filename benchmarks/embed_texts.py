"""A table of texts with the vector of each by a pretrained sentence encoder, as Parquet.

    python benchmarks/embed_texts.py ENCODER train.csv.gz train.parquet

ENCODER is a folder or the name of a model that transformers loads and whose sentence vector is the
mean over its tokens, such as sentence-transformers/all-MiniLM-L6-v2. The columns of the CSV file
are kept, and the vectors are a column ``embedding`` beside them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

BATCH = 64
_MOST_TOKENS = 256


def embed(texts: Sequence[str], encoder: str) -> Tensor:
    """The mean of the last hidden state over the tokens of each text, of norm 1."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    network = AutoModel.from_pretrained(encoder).eval()
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # so that little is padded
    vectors: dict[int, Tensor] = {}
    with torch.inference_mode():
        for at in range(0, len(order), BATCH):
            some = order[at : at + BATCH]
            tokens = tokenizer(
                [texts[i] for i in some],
                padding=True,
                truncation=True,
                max_length=_MOST_TOKENS,
                return_tensors="pt",
            )
            mask = tokens["attention_mask"].unsqueeze(-1)
            hidden = network(**tokens).last_hidden_state
            means = normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
            vectors |= dict(zip(some, means, strict=True))
            print(f"\r{at + len(some):,} of {len(texts):,}", end="", flush=True)
    print()
    return torch.stack([vectors[i] for i in range(len(texts))])


def main() -> None:
    import pyarrow
    import pyarrow.parquet

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("encoder")
    parser.add_argument("texts", type=Path, help="a CSV file, packed by gzip or not")
    parser.add_argument("out", type=Path)
    parser.add_argument("--text", default="text", help="the column of the texts")
    given = parser.parse_args()
    opener: Any = gzip.open if given.texts.suffix == ".gz" else open
    with opener(given.texts, "rt", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    columns["embedding"] = list(embed(columns[given.text], given.encoder).numpy())
    pyarrow.parquet.write_table(pyarrow.table(columns), given.out)


if __name__ == "__main__":
    main()
