"""The suspects as one self-contained HTML page, to go through with the keyboard."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__, _vega
from .._errors import UsageError, require
from .._escape import printable
from ..noise._checks import as_array, is_tensor
from ._pixels import png

if TYPE_CHECKING:
    from ._audit import Audit

MAX_SUSPECTS = 2000
_TOP = 5  # classes whose probability is shown
_MAX_TEXT = 5000  # characters
_MAX_COLUMNS = 60
_MAX_NAME = 200
_MAX_VALUE = 2000  # of a column, which may be a text
_TYPES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


def audit_page(
    audit: Audit,
    samples: Callable[[int], Any] | Sequence[Any] | None,
    *,
    number: int | None = None,
    title: str = "",
    apply: str = "",
) -> str:
    """The page; its arguments are those of `Audit.to_html`."""
    require("jinja2", "report", "a page of suspects")
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    if samples is not None and not callable(samples):
        if len(samples) != len(audit.labels):
            raise UsageError(f"{len(samples)} samples were given for {len(audit.labels)} labels")
        samples = samples.__getitem__
    suspects = audit.suspects(min(len(audit), MAX_SUSPECTS) if number is None else number)
    rows = []
    for s in suspects:
        p = audit.probabilities[s.index]
        top = np.argsort(-p, kind="stable")[:_TOP].tolist()
        given = int(audit.labels[s.index])
        if given not in top:
            top[-1] = given
        kind, shown = _shown(None if samples is None else samples(s.index))
        rows.append([
            s.rank, s.index, s.name[:_MAX_NAME], given, int(audit.suggested[s.index]),
            round(s.score, 4), [[k, round(float(p[k]), 4)] for k in top], kind, shown, s.annotator,
        ])  # fmt: skip
    shares = [("Likely wrong by given class", audit.by_class())]
    if audit.annotators:
        shares.append(("Likely wrong by annotator", audit.by_annotator()))
    data = {
        "key": _key(audit), "classes": [printable(name) for name in audit.classes], "rows": rows,
        "apply": apply,
    }  # fmt: skip
    loader = PackageLoader(__package__)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    here = f"The {len(rows):,} most suspect are here." if len(rows) != len(audit) else ""
    return environment.get_template("audit.html.j2").render(
        title=title or "Labels that are likely wrong",
        rate=f"{audit.rate:.1%}",
        labels=f"{len(audit.labels):,}",
        number=len(rows),
        shown=here,
        shares=shares,
        version=__version__,
        css=Markup(loader.get_source(environment, "audit.css")[0]),
        script=Markup(loader.get_source(environment, "audit.js")[0]),
        data=Markup(_vega.to_json(data)),
    )


def _key(audit: Audit) -> str:
    """Of the labels that are audited: marks of other labels are not taken for marks of these."""
    digest = hashlib.sha256(audit.labels.tobytes())
    for text in (*audit.classes, *audit.names):
        digest.update(text.encode(errors="surrogatepass") + b"\0")
    return digest.hexdigest()[:16]


def _shown(sample: Any) -> tuple[str, Any]:
    """What kind of sample the page shows, and what it shows of it."""
    if sample is None:
        return "", ""
    if isinstance(sample, bytes):
        known = [kind for start, kind in _TYPES.items() if sample.startswith(start)]
        if not known:
            raise UsageError("an image for the page is the bytes of a PNG, JPEG, GIF or WebP file")
        return "image", f"data:image/{known[0]};base64,{base64.b64encode(sample).decode()}"
    if hasattr(sample, "convert"):  # an image of Pillow
        sample = np.asarray(sample.convert("RGB"))
    if isinstance(sample, np.ndarray) or is_tensor(sample):
        return _shown(png(as_array(sample)))
    if isinstance(sample, Mapping):
        pairs = [[_cut(str(k), _MAX_NAME), _cut(str(v), _MAX_VALUE)] for k, v in sample.items()]
        left = [["…", f"{len(pairs) - _MAX_COLUMNS} more"]] if len(pairs) > _MAX_COLUMNS else []
        return "row", pairs[:_MAX_COLUMNS] + left
    return "text", _cut(str(sample), _MAX_TEXT).splitlines()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
