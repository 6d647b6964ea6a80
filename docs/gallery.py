"""The gallery of the site: a page for each loss and for some sums, made from the declarations.

The pages and their pictures are written when the site is built (see conf.py) and are not committed.
What they share with docs/losses.md, which is, comes from here too.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from cells import row

import noiseproof
from noiseproof import pictures, syntax, theory
from noiseproof.catalogue import METHODS, Setting
from noiseproof.losses import Entry, Loss

CLASSES = 10
SUMS = ("nce + mae", "nce + rce", "nfl + rce", "5*nce + 5*nnce", "nce + amse")
FORMS = (
    "normalize", "symmetrize", "negative", "epsilon_softmax", "logit_clip", "bootstrap",
    "forward_correction", "backward_correction",
)  # fmt: skip


def entries() -> list[Entry]:
    return list(noiseproof.losses.registry().values())


def hyper(entry: Entry) -> str:
    return "<br>".join(f"`{n}={h.default:g}`, {h.range}" for n, h in entry.hyperparameters.items())


def as_markdown(docstring: str) -> str:
    """Formulas as ``$$...$$``, and the arguments as a list."""

    def formula(found: re.Match[str]) -> str:
        return f"$${' '.join(found[1].split())}$$"

    def arguments(found: re.Match[str]) -> str:
        items = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", found[1], flags=re.MULTILINE)
        lines = (f"- `{name}`: {' '.join(about.split())}" for name, about in items)
        return "\n".join(["Hyper-parameters:", "", *lines])

    text = re.sub(r"^\.\. math:: (.*(?:\n +.*)*)", formula, docstring, flags=re.MULTILINE)
    return re.sub(r"^Args:\n((?: {4}.*(?:\n|\Z))+)", arguments, text, flags=re.MULTILINE)


def text_and_example(entry: Entry) -> tuple[str, str]:
    """What a docstring says, as Markdown, and its example as a block."""
    text, _, example = inspect.cleandoc(entry.loss.__doc__ or "").partition("\n\n>>>")
    lines = ["```pycon", f">>> from noiseproof import {entry.loss.__name__}", f">>>{example}"]
    return as_markdown(text), "\n".join([*lines, "```"])


def slug(text: str) -> str:
    """The name of the page of a loss or a sum.

    >>> slug("nce"), slug("5*nce + 5*nnce")
    ('nce', '5-nce-5-nnce')
    """
    return re.sub(r"[^a-z0-9]+", "-", text)


def title(entry: Entry) -> str:
    """The text of a loss and the words of its class: nce: Normalized Cross Entropy."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", entry.loss.__name__)
    return f"{entry.name}: {words}"


def facts(check: theory.Check) -> list[str]:
    """What is computed of a loss, as rows of a table."""
    rows = [(what, text) for what, text in check.rows() if what != "kind"]
    kinds = {
        "active": "active: its summand is zero for every class but the label",
        "passive": "passive: its summand is not zero for every class but the label",
        "undetermined": "undetermined: it is no sum over classes",
    }
    if check.terms:
        kinds["passive"] = "passive, as it has a passive term"
    lines = [row("", f"with {check.num_classes} classes"), row("---", "---")]
    lines += [row(what, text) for what, text in [("kind", kinds[check.kind]), *rows]]
    return [*lines, "", "[What these words mean](../theory.md), and how they are computed."]


def methods_with(text: str) -> list[str]:
    """The published methods that a loss is a term of, with their settings by data set."""
    terms = _names(text)
    lines = []
    for name, method in METHODS.items():
        settings = {d: s for d, s in (method.paper or {}).items() if isinstance(s, Setting)}
        if any(terms <= _names(setting.loss) for setting in settings.values()):
            shown = (f"{dataset} `{syntax.short(s.loss)}`" for dataset, s in settings.items())
            lines.append(row(f"`{name}`", method.label, "; ".join(shown)))
    if not lines:
        return []
    head = [row("`--loss`", "in papers", "settings by data set"), row("---", "---", "---")]
    return ["", "## In published methods", "", *head, *lines]


def _names(text: str) -> set[str]:
    return {leaf.name for leaf in syntax.leaves(syntax.read(text))}


def picture(text: str) -> list[str]:
    about = f"The value of {text} and its gradient, for clean and for wrong labels"
    return ["", f"![{about}]({slug(text)}.svg)", ""]


def loss_page(entry: Entry) -> str:
    about, example = text_and_example(entry)
    name = entry.loss.__name__
    function = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
    use = (
        f"The class {{py:class}}`noiseproof.{name} <noiseproof.losses.{name}>`, the function "
        f"{{py:func}}`noiseproof.functional.{function}`, or the text `{entry.name}`, alone or in a "
        f"sum, in `noiseproof.parse` and after `--loss`."
    )
    parts = [f"# {title(entry)}", "", about, *picture(entry.name)]
    parts += [*facts(theory.check(entry.make(), CLASSES)), "", "## Use", "", use, "", example]
    parts += [*methods_with(entry.name), "", f"Reference: {entry.reference}."]
    return "\n".join(parts) + "\n"


def sum_page(text: str) -> str:
    loss = noiseproof.parse(text)
    parts = [
        f"# `{text}`", "", f"The sum of {_terms(loss)}.", *picture(text),
        *facts(theory.check(loss, CLASSES)), "", "## Use", "",
        "```python", "import noiseproof", "", f'criterion = noiseproof.parse("{text}")', "```",
        *methods_with(text),
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _terms(loss: Loss) -> str:
    """The terms of a sum, each with its kind and a link."""
    terms = noiseproof.losses.terms(loss)
    linked = [
        f"{'' if factor == 1 else f'{factor:g} times '}the {part.kind} [{part}]({part}.md)"
        for factor, part in terms
    ]
    return " and ".join(linked)


def overview() -> str:
    """The page of all losses: takes the place of docs/losses.md on the site."""
    columns = ("loss", "shape", "kind", "symmetric noise", "value at label y", "defaults")
    head = [row(*columns), row(*["---"] * len(columns))]
    losses = [
        row(
            f"[`{e.name}`](losses/{slug(e.name)}.md)",
            sparkline(e.make()),
            e.kind,
            _robust(e.make()),
            f"`{e.formula}`",
            " ".join(f"`{name}={h.default:g}`" for name, h in e.hyperparameters.items()),
        )
        for e in entries()
    ]
    sums = [
        row(f"[`{t}`](losses/{slug(t)}.md)", sparkline(loss), loss.kind, _robust(loss))
        for t, loss in ((t, noiseproof.parse(t)) for t in SUMS)
    ]
    parts = [
        "# The losses",
        "",
        "p is the softmax of the logits, y the label, K the number of classes. *Shape* is the "
        "value (thick) and the norm of its gradient (thin) as p_y goes from 0 to 1, at "
        f"K = {CLASSES}, each on a scale of its own. A "
        "loss is *active* if its summand is zero for every class but the label, else *passive* "
        "([why MAE is](active-or-passive.md)). It tolerates *symmetric noise* if its sum over all "
        "labels is the same for every prediction ([theory](theory.md)). Losses are added with `+` "
        "and scaled with `*`.",
        "",
        *head,
        *losses,
        "",
        "## Sums",
        "",
        "The paper adds a robust active and a robust passive loss. Any other sum is made in the "
        'same way, `noiseproof.parse("10*nce + 0.1*rce")`.',
        "",
        row("sum", "shape", "kind", "symmetric noise"),
        row(*["---"] * 4),
        *sums,
        "",
        "## Losses made from a loss",
        "",
        *(f"- {{py:func}}`{name} <noiseproof.losses.{name}>`: {_summary(name)}" for name in FORMS),
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(f"{e.name} <losses/{slug(e.name)}>" for e in entries()),
        *(f"{text} <losses/{slug(text)}>" for text in SUMS),
        "```",
    ]
    return "\n".join(parts) + "\n"


def _summary(name: str) -> str:
    """The first paragraph of a docstring, on one line."""
    about = inspect.getdoc(getattr(noiseproof.losses, name)) or ""
    return " ".join(about.split("\n\n")[0].split())


def _robust(loss: Loss) -> str:
    low, high = noiseproof.losses.class_sum_range(loss, CLASSES)
    return "tolerated" if high - low <= 1e-9 * max(1.0, high) else ""


def write(folder: Path) -> None:
    """Write the pages and their pictures where they are not yet as they should be."""
    folder.mkdir(exist_ok=True)
    pages = {e.name: loss_page(e) for e in entries()} | {text: sum_page(text) for text in SUMS}
    for text, page in pages.items():
        path = folder / f"{slug(text)}.md"
        if not path.exists() or path.read_text() != page:
            path.write_text(page)  # what has not changed is not read again
        pictures.draw(noiseproof.parse(text), path.with_suffix(".svg"))


def sparkline(loss: Loss, width: int = 96, height: int = 40) -> str:
    """The value and the norm of the gradient against p_y, for the cell of a table."""
    curves: dict[str, list[float]] = {"value": [], "gradient norm": []}
    for point in pictures.curves(loss, CLASSES, points=48)["value"]:
        curves[point["curve"]].append(point["y"])
    lines = []
    for name, values in curves.items():
        low = min(values) if name == "value" else 0.0
        scale = (height - 4) / (max(values) - low)
        ends = [f"{i * 2 + 1},{height - 2 - (y - low) * scale:.1f}" for i, y in enumerate(values)]
        lines.append(f'<polyline class="{name.split()[0]}" points="{" ".join(ends)}"/>')
    return f'<svg class="sparkline" viewBox="0 0 {width} {height}">{"".join(lines)}</svg>'
