"""Methods by the names that papers print, and the losses' texts that stand for them."""

from __future__ import annotations

import re

# In the order of the paper's tables, then of those that came after: the label, then the text.
METHODS = {
    "CE": "ce",
    "FL": "fl",
    "GCE": "gce",
    "NLNL": "nlnl",
    "SCE": "sce",
    "MAE": "mae",
    "RCE": "rce",
    "NCE": "nce",
    "NFL": "nfl",
    "NGCE": "ngce",
    "NMAE": "nmae",
    "NRCE": "nrce",
    "NFL+MAE": "nfl+mae",
    "NFL+RCE": "nfl+rce",
    "NCE+MAE": "nce+mae",
    "NCE+RCE": "nce+rce",
    "NGCE+MAE": "ngce+mae",
    "NGCE+RCE": "ngce+rce",
    "NFL+NCE": "nfl+nce",
    "MAE+RCE": "mae+rce",
    "AGCE": "agce",
    "AUL": "aul",
    "AEL": "ael",
    "NCE+AGCE": "nce+agce",
    "NCE+AUL": "nce+aul",
    "NCE+AEL": "nce+ael",
    "JS": "js",
    "LDR-KL": "ldr",
    "CEeps+MAE": "epsilon-softmax",
    "FLeps+MAE": "epsilon-softmax-fl",
    "ANL-CE": "anl-ce",
    "ANL-FL": "anl-fl",
    "JAL-CE": "jal-ce",
    "JAL-FL": "jal-fl",
}
_LABELS = {key: label for label, text in METHODS.items() for key in (text, label.lower())}
_WORDS = {text: label for text, label in _LABELS.items() if text.isalpha() and label.isalpha()}
_NAME = re.compile(r"\b[A-Za-z]\w*(?![\w=])")
_ORDER = {label: i for i, label in enumerate(METHODS)}


def method_of(loss: str) -> str:
    """The name that papers print for a loss, given by its text or by that name.

    A text that no paper has a name for stays as it is, with its losses in capitals.

    >>> method_of("nce+rce"), method_of("epsilon-softmax"), method_of("5*nce + rce(A=-4)")
    ('NCE+RCE', 'CEeps+MAE', '5*NCE+RCE(A=-4)')
    """
    text = "".join(loss.split())
    known = _LABELS.get(text.lower())
    if known is not None:
        return known
    return _NAME.sub(lambda m: _WORDS.get(m[0].lower(), m[0]), text)


def rank_of(method: str) -> tuple[int, str]:
    """Sorts methods as the paper's tables have them, those without a name last."""
    return _ORDER.get(method, len(_ORDER)), method
