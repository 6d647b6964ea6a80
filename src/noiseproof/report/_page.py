"""The report as one self-contained HTML page."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from .. import __version__, _vega
from .._errors import require
from .._escape import printable
from ..catalogue import dataset_title
from ..results import Record
from ._charts import X_TITLES, plot_height
from ._compile import page_specs
from ._figure import ACCURACY_DOTS, LINE_CHARTS, Figure, Panel
from ._provenance import HEADERS, Provenance, make_provenance
from ._report import Report
from ._study import Study
from ._styles import Style
from ._tables import Table
from ._words import ACCURACY_WORDS, JudgedOn, listed, protocol_title, seeds_listed

_MAX_READ_OUT = 20  # numbers in the alternative text of a chart
_NARROW = 3  # columns of a table that fits beside a chart


def html(report: Report, title: str | None = None, beside: Report | None = None) -> str:
    """Render a report as one HTML page that needs no network.

    Args:
        report: what the page shows.
        title: the page's title.
        beside: results of others to show for comparison. They have a section of their own, and do
            not enter the conclusion.
    """
    for module in ("jinja2", "vl_convert"):
        require(module, "report", "a report")
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader(__package__)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=False,
        keep_trailing_newline=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    other = _beside_section(beside) if beside else None
    problems = report.study.problems + report.examples.problems
    problems += beside.study.problems if beside else []
    figures = report.figures + (other["figures"] if other else [])
    styles = _Styles({**(beside.study.styles if beside else {}), **report.study.styles})
    provenance = make_provenance(report.study)
    missing = [section for section in report.story if not section.figures]
    environment.globals.update(
        style_number=styles.number,
        line_charts=LINE_CHARTS,
        alt_text=_alt_text,
        last_value=_last_value,
        format_difference=_format_difference,
        num_columns=_num_columns,
        plot_height=plot_height,
        full_names=_full_names,
        what_numbers_are=functools.partial(_what_numbers_are, measured=report.study.measured),
        accuracy_words=ACCURACY_WORDS,
        has_published=lambda tables: any(table.sources for table in tables),
        seeds_listed=seeds_listed,
    )
    return environment.get_template("page.html.j2").render(
        title=title or "Training on wrong labels",
        report=report,
        examples=report.examples,
        story=[section for section in report.story if section.figures],
        missing=missing,
        side_by_side=_fit_side_by_side(report),
        facts=_facts(report.study),
        problems=problems,
        beside=other,
        provenance=provenance,
        headers=HEADERS,
        contents=_contents(report, with_beside=bool(other), with_problems=bool(problems)),
        version=__version__,
        styles=styles.unique,
        css=Markup(loader.get_source(environment, "style.css")[0]),
        script=Markup(loader.get_source(environment, "script.js")[0]),
        vega=Markup(_vega.javascript()),
        data=Markup(_vega.to_json(_page_data(styles, figures, provenance))),
    )


class _Styles:
    """The styles of labels, each different one once."""

    def __init__(self, by_label: dict[str, Style]) -> None:
        numbers: dict[Style, int] = {}
        self._numbers = {
            label: numbers.setdefault(style, len(numbers)) for label, style in by_label.items()
        }
        self.unique = list(numbers)

    def number(self, label: str) -> int | None:
        """The index of a label's style, or None: nothing of it was run."""
        return self._numbers.get(label)


def _beside_section(report: Report) -> dict[str, Any]:
    """The section of results that are not the report's own, and where they were read from."""
    records = (r for cell in report.study.cells for r in cell.records)
    return {
        "sources": listed(list(dict.fromkeys(map(_place, records)))),
        "facts": _facts(report.study),
        "conclusion": report.conclusions[0],
        "figures": [replace(f, name=f"beside-{f.name}") for f in report.overview],
        "tables": report.tables,
    }


def _place(record: Record) -> str:
    """The bundle of a run, or the folder that its folder is in."""
    source = record.source
    return str(source.parent if source.name in (record.run.folder, record.hash) else source)


def _contents(report: Report, with_beside: bool, with_problems: bool) -> list[tuple[str, str]]:
    """The anchors and titles of the sections."""
    found = [("conclusion", "Conclusion")]
    found += [("examples", "Wrong labels")] if report.examples.rows else []
    found += [("tables", "Tables")] if report.tables else []
    found += [("disbelief", "Labels not believed")] if report.disbelief else []
    found += [(section.anchor, section.title) for section in report.story if section.figures]
    found += [("curves", "By epoch")] if report.curves else []
    found += [("beside", "For comparison")] if with_beside else []
    found += [("problems", "Problems")] if with_problems else []
    return [*found, ("runs", "Settings and runs")]


def _fit_side_by_side(report: Report) -> bool:
    """Whether the only chart of the overview and the only table can share the page's width."""
    panels = [panel for figure in report.overview for panel in figure.panels]
    return len(panels) == 1 and len(report.tables) == 1 and len(report.tables[0].columns) <= _NARROW


def _facts(study: Study) -> list[tuple[str, str]]:
    """How many runs of what there are, as names and values."""
    records = [r for cell in study.cells for r in cell.records]
    datasets = dict.fromkeys(dataset_title(cell.dataset) for cell in study.cells)
    seeds = sorted({seed for cell in study.cells for seed in cell.seeds})
    protocols = dict.fromkeys(e.protocol_note for e in study.entries)
    compared = {e.cell.protocol for e in study.entries}
    protocols |= dict.fromkeys(
        protocol_title(cell.protocol, cell.dataset)
        for cell in study.cells
        if cell.protocol not in compared
    )
    machines = dict.fromkeys(
        str((r.about.get("machine") or {}).get("device", "not recorded")) for r in records
    )
    return [
        ("Runs", f"{len(records):,}"),
        ("Data sets", listed(list(datasets))),
        ("Losses", f"{len({e.cell.method for e in study.entries}):,}"),
        ("Seeds", seeds_listed(seeds)),
        ("Protocol", "; ".join(list(protocols)[:_MAX_READ_OUT])),
        ("Machine", listed(list(machines))),
    ]


def _what_numbers_are(tables: list[Table], measured: str) -> str:
    """What the numbers of these tables are."""
    on: set[JudgedOn] = {table.judged_on for table in tables}
    accuracy = ACCURACY_WORDS["both" if len(on) > 1 else on.pop()]
    spreads = {table.spread for table in tables}
    if len(spreads) > 1:
        after = "the sample deviation over the seeds or, of labels as given, its standard error"
    elif "deviation" in spreads:
        after = "the sample deviation over the seeds"
    else:
        after = "its standard error over the seeds"
    alone = " (none for one seed)" if any(table.has_single_seeds for table in tables) else ""
    return (
        f"{accuracy[0].upper()}{accuracy[1:]} in percent {measured}: the mean, ± "
        f"{after}{alone}; the best two of each column in bold."
    )


def _full_names(tables: list[Table]) -> dict[str, str]:
    """The names of losses in these tables, each with the words that it stands for."""
    return {name: words for table in tables for name, words in table.full_names.items()}


def _page_data(styles: _Styles, figures: list[Figure], provenance: Provenance) -> dict[str, Any]:
    """The numbers and the Vega of all charts and the list of runs, for the page's script.

    A curve is the index of its label, the index of its x values, which many curves share, its y
    values and its deviations.
    """
    labels: dict[str, int] = {}
    xs: dict[tuple[float, ...], int] = {}
    panels: dict[str, list[dict[str, Any]]] = {}
    for figure in figures:
        for panel in figure.panels:
            for label in panel.labels:
                labels.setdefault(label, len(labels))
            content: dict[str, Any] = {"chart": panel.chart}
            if panel.curves:
                content["curves"] = [
                    [labels[c.label], xs.setdefault(c.x, len(xs)), c.y,
                     c.deviation if any(d is not None for d in c.deviation) else None]
                    for c in panel.curves
                ]  # fmt: skip
            else:
                content["rows"] = panel.rows
            if figure.y_domain:
                content["y_domain"] = figure.y_domain
            panels.setdefault(figure.name, []).append(content)
    charts = list(dict.fromkeys(figure.chart for figure in figures))
    return {
        "labels": list(labels),
        "label_styles": [styles.number(label) for label in labels],
        "styles": [
            {"light": s.light, "dark": s.dark, "dash": list(s.dash) or [1, 0]}
            for s in styles.unique
        ],
        "xs": list(xs),
        "figures": panels,
        "specs": page_specs(charts),
        "x_titles": {chart: title.capitalize() for chart, title in X_TITLES.items()},
        "words": provenance.words,
        "runs": provenance.rows,
    }


def _alt_text(figure: Figure, panel: Panel) -> str:
    """The content of a panel in words; of many numbers the first."""
    title = f"{figure.title}, {panel.title}."
    if panel.rows:
        captions = [row["caption"] for row in panel.rows]
        return f"{title} {'; '.join(captions[:_MAX_READ_OUT])}."
    curves = sorted(panel.curves, key=lambda c: -(c.last or 0))
    values = [f"{c.label} {c.last:.1f}" for c in curves if c.last is not None]
    numbers = ", ".join(values[:_MAX_READ_OUT])
    return f"Line chart. {title} At the last {X_TITLES[panel.chart]}: {numbers}."


def _num_columns(figure: Figure) -> int:
    """How many panels a wide page shows side by side, so that the last row is not nearly empty."""
    count = len(figure.panels)
    if count == 1:
        return 1
    if figure.chart == "rates" or figure.chart in ACCURACY_DOTS.values() or count == 2:
        return 2
    return 4 if count % 4 == 0 or count == 7 else 3


def _last_value(panel: Panel, label: str) -> str:
    found = [c.last for c in panel.curves if c.label == label]
    return f"{found[0]:.2f}" if found and found[0] is not None else "\N{EN DASH}"


def _format_difference(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
