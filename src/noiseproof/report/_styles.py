"""The style of each loss in charts: its colour and dash."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PERCENT = "\N{NO-BREAK SPACE}%"
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Style:
    """How a line is drawn: a colour for each theme, and a dash pattern."""

    light: str
    dark: str
    dash: tuple[int, ...] = ()


# A hue for each family of losses and a dash for each member, so that losses can also be told apart
# without colour vision.
_GREY = ("#5c6470", "#b3bbc7")
_PINK = ("#a8478c", "#e795cb")
_OCHRE = ("#946b00", "#e3bb47")
_BROWN = ("#7a4a2b", "#cf9f7d")
_SKY = ("#2b86bd", "#71c5f3")
_GREEN = ("#00795a", "#3fcaa0")
_BLUE = ("#0a4fa3", "#7db2ff")
_RED = ("#c2470f", "#ff9566")
_VIOLET = ("#6546b0", "#b8a5ff")
_BLACK = ("#14171c", "#ffffff")
_WINE = ("#8d1442", "#f2799f")
_OLIVE = ("#5d7a00", "#b9d65c")
_TEAL = ("#00707f", "#4cd3e6")
_DASHED, _DOTTED, _MIXED = (6, 3), (2, 2), (8, 3, 2, 3)
_METHOD_STYLES = {
    "CE": Style(*_GREY), "FL": Style(*_GREY, _DASHED),
    "GCE": Style(*_PINK), "SCE": Style(*_OCHRE), "NLNL": Style(*_BROWN),
    "MAE": Style(*_SKY), "RCE": Style(*_SKY, _DASHED),
    "NMAE": Style(*_SKY, _DOTTED), "NRCE": Style(*_SKY, (1, 3)), "MAE+RCE": Style(*_SKY, _MIXED),
    "NCE": Style(*_GREEN), "NFL": Style(*_GREEN, _DASHED),
    "NGCE": Style(*_GREEN, _DOTTED), "NFL+NCE": Style(*_GREEN, _MIXED),
    "NCE+RCE": Style(*_BLUE), "NCE+MAE": Style(*_BLUE, _DASHED),
    "NFL+RCE": Style(*_RED), "NFL+MAE": Style(*_RED, _DASHED),
    "NGCE+RCE": Style(*_VIOLET), "NGCE+MAE": Style(*_VIOLET, _DASHED),
    "JAL-CE": Style(*_BLACK), "JAL-FL": Style(*_BLACK, _DASHED),
    "ANL-CE": Style(*_WINE), "ANL-FL": Style(*_WINE, _DASHED),
    "CEeps+MAE": Style(*_OLIVE), "FLeps+MAE": Style(*_OLIVE, _DASHED), "auto": Style(*_TEAL),
    # factors of the scaling figure, from light to strong
    f"{TIMES}1": Style("#5c6470", "#b3bbc7", _DOTTED), f"{TIMES}2": Style("#2b86bd", "#71c5f3"),
    f"{TIMES}5": Style("#946b00", "#e3bb47", _DASHED), f"{TIMES}10": Style("#c2470f", "#ff9566"),
}  # fmt: skip
_SPARE_COLOURS = (_OCHRE, _VIOLET, _WINE, _OLIVE, _BROWN, _PINK, _BLUE, _RED, _GREEN)
_SPARE_DASHES = (_DOTTED, _MIXED, (4, 2), (1, 3), (10, 2))


def assign_styles(labels: Iterable[tuple[str, str]]) -> dict[str, Style]:
    """Assign a style to each label.

    A label has the colour of its method. Further labels of the same method get other dashes, and
    methods without a colour in the table above take the spare ones in turn.

    Args:
        labels: pairs of a label and its method.
    """
    styles: dict[str, Style] = {}
    method_styles = dict(_METHOD_STYLES)
    label_counts: dict[str, int] = {}
    for label, method in labels:
        if label in styles:
            continue
        if method not in method_styles:
            turn, hue = divmod(len(method_styles) - len(_METHOD_STYLES), len(_SPARE_COLOURS))
            spare_dash = _SPARE_DASHES[turn % len(_SPARE_DASHES)]
            method_styles[method] = Style(*_SPARE_COLOURS[hue], spare_dash)
        base, count = method_styles[method], label_counts.get(method, 0)
        dash = base.dash if count == 0 else _SPARE_DASHES[(count - 1) % len(_SPARE_DASHES)]
        styles[label] = Style(base.light, base.dark, dash)
        label_counts[method] = count + 1
    return styles
