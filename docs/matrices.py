"""The picture of docs/noise.md: the transition matrix of each kind of noise that is drawn."""

from __future__ import annotations

import numpy as np

from noiseproof import _vega, data, noise

RATE = 0.4
SIDE = 168


def matrices() -> dict[str, np.ndarray]:
    """Of each kind of noise the matrix that it aims at, with ten classes."""
    digits = data.load("digits")
    features = np.asarray(digits.train.inputs) / 255
    instance = noise.make("instance", digits.train.labels, RATE, features=features)
    assert instance.requested_matrix is not None
    return {
        "symmetric": noise.matrix("symmetric", RATE, num_classes=10),
        "pairflip": noise.matrix("pairflip", RATE, num_classes=10),
        "asymmetric, CIFAR-10": noise.matrix("asymmetric", RATE, dataset="cifar10"),
        "instance, digits": instance.requested_matrix,
    }


def svg() -> bytes:
    spec = {
        "description": f"transition matrices of label noise of rate {RATE}",
        "hconcat": [_panel(name, T) for name, T in matrices().items()],
        "spacing": 20,
        "config": {**_vega.config(), "background": "white", "padding": 16},
    }
    return _vega.render(spec, "svg")


def _panel(title: str, T: np.ndarray) -> _vega.Spec:
    cells = [
        {"true": i, "given": j, "probability": float(f"{T[i, j]:.3g}")}
        for i, j in np.ndindex(T.shape)
    ]
    axis = {"domain": False, "ticks": False, "labelAngle": 0, "grid": False}
    return {
        "title": {"text": title, "anchor": "middle", "fontSize": 12},
        "width": SIDE, "height": SIDE, "data": {"values": cells}, "mark": "rect",
        "encoding": {
            "x": {"field": "given", "type": "ordinal", "title": "given label", "axis": axis},
            "y": {"field": "true", "type": "ordinal", "title": "true class", "axis": axis},
            "color": {
                "field": "probability", "type": "quantitative", "legend": None,
                "scale": {"domain": [0, 1], "type": "sqrt", "range": ["#f4f6f9", "#0a4fa3"]},
            },
        },
    }  # fmt: skip
