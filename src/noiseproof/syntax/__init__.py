"""The text of a loss, read without torch: ``10*nce + 0.1*rce(A=-4)``.

`read` checks a text and gives a tree; `canonical` writes the one text that all equal losses share.
`noiseproof.parse` builds a loss from the tree; runs, benches and reports use the canonical text.

>>> from noiseproof import syntax
>>> syntax.canonical("RCE + NCE")
'nce + rce(A=-4)'
"""

from ._hyper import Hyper, check_all, hyper
from ._parameters import parameters, with_parameters
from ._read import read
from ._signatures import (
    FORMS,
    SIGNATURES,
    Signature,
    declare,
    declare_form,
    is_loss_name,
    to_json,
)
from ._tree import Leaf, Sum, Tree, Wrapped, canonical, leaves, number, short, uses_user_losses

__all__ = [
    "FORMS",
    "SIGNATURES",
    "Hyper",
    "Leaf",
    "Signature",
    "Sum",
    "Tree",
    "Wrapped",
    "canonical",
    "check_all",
    "declare",
    "declare_form",
    "hyper",
    "is_loss_name",
    "leaves",
    "number",
    "parameters",
    "read",
    "short",
    "to_json",
    "uses_user_losses",
    "with_parameters",
]
