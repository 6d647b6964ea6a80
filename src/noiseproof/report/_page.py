"""The report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import __version__, _vega
from .._errors import require
from ..catalogue import dataset_title
from ._charts import X_TITLES
from ._compile import page_specs
from ._figures import LINE_CHARTS, Figure, Panel
from ._provenance import make_provenance
from ._report import Report
from ._study import Study
from ._styles import Style


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
    )  # fmt: skip
    styles = {**(beside.study.styles if beside else {}), **report.study.styles}
    other = _beside_section(beside) if beside else None
    problems = report.study.problems + (beside.study.problems if beside else [])
    figures = report.figures + (other["figures"] if other else [])
    environment.globals.update(
        styles=styles,
        line_charts=LINE_CHARTS,
        alt_text=_alt_text,
        last_value=_last_value,
        format_difference=_format_difference,
        num_columns=_num_columns,
    )
    return environment.get_template("page.html.j2").render(
        title=title or "Training on wrong labels",
        report=report,
        facts=_facts(report.study),
        problems=problems,
        beside=other,
        has_published=any(table.sources for table in report.tables),
        provenance=make_provenance(report.study),
        contents=_contents(report, with_beside=bool(other), with_problems=bool(problems)),
        version=__version__,
        css=Markup(loader.get_source(environment, "style.css")[0]),
        script=Markup(loader.get_source(environment, "script.js")[0]),
        vega=Markup(_vega.javascript()),
        data=Markup(_vega.to_json(_chart_data(styles, figures))),
    )


def _beside_section(report: Report) -> dict[str, Any]:
    """The section of results that are not the report's own, and where they were read from."""
    sources = dict.fromkeys(str(r.source) for cell in report.study.cells for r in cell.records)
    return {
        "sources": ", ".join(sources),
        "facts": _facts(report.study),
        "conclusion": report.conclusions[0],
        "figures": [replace(f, name=f"beside-{f.name}") for f in report.overview],
        "tables": report.tables,
    }


def _contents(report: Report, with_beside: bool, with_problems: bool) -> list[tuple[str, str]]:
    """The anchors and titles of the sections."""
    found = [("conclusion", "Conclusion")]
    found += [("tables", "Tables")] if report.tables else []
    found += [(section.anchor, section.title) for section in report.story]
    found += [("curves", "By epoch")] if report.curves else []
    found += [("beside", "For comparison")] if with_beside else []
    found += [("problems", "Problems")] if with_problems else []
    return [*found, ("runs", "Settings and runs")]


def _facts(study: Study) -> list[tuple[str, str]]:
    """How many runs of what there are, as names and values."""
    records = [r for cell in study.cells for r in cell.records]
    datasets = dict.fromkeys(dataset_title(cell.dataset) for cell in study.cells)
    seeds = sorted({seed for cell in study.cells for seed in cell.seeds})
    protocols = [e.protocol_note for e in study.entries]
    compared = {e.cell.protocol for e in study.entries}
    protocols += [cell.protocol for cell in study.cells if cell.protocol not in compared]
    machines = (r.about.get("machine", {}).get("device", "not recorded") for r in records)
    return [
        ("Runs", str(len(records))),
        ("Data sets", ", ".join(datasets)),
        ("Losses", str(len({e.cell.method for e in study.entries}))),
        ("Seeds", ", ".join(map(str, seeds))),
        ("Protocol", "; ".join(dict.fromkeys(protocols))),
        ("Machine", ", ".join(dict.fromkeys(map(str, machines)))),
    ]


def _chart_data(styles: Mapping[str, Style], figures: list[Figure]) -> dict[str, Any]:
    """The numbers and the Vega of all charts, for the page's script.

    A curve is the index of its label, the index of its x values, which many curves share, its y
    values and its deviations.
    """
    labels = list(styles)
    xs: dict[tuple[float, ...], int] = {}
    panels: dict[str, list[dict[str, Any]]] = {}
    for figure in figures:
        for panel in figure.panels:
            content: dict[str, Any] = {"chart": panel.chart}
            if panel.curves:
                content["curves"] = [
                    [labels.index(c.label), xs.setdefault(c.x, len(xs)), c.y,
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
        "labels": labels,
        "xs": list(xs),
        "figures": panels,
        "specs": page_specs(charts, styles),
        "x_titles": {chart: title.capitalize() for chart, title in X_TITLES.items()},
    }


def _alt_text(figure: Figure, panel: Panel) -> str:
    """The content of a panel in words."""
    title = f"{figure.title}, {panel.title}."
    if panel.rows:
        return f"{title} {'; '.join(row['caption'] for row in panel.rows)}."
    curves = sorted(panel.curves, key=lambda c: -(c.last or 0))
    values = ", ".join(f"{c.label} {c.last:.1f}" for c in curves if c.last is not None)
    return f"Line chart. {title} At the last {X_TITLES[panel.chart]}: {values}."


def _num_columns(figure: Figure) -> int:
    """How many panels a wide page shows side by side, so that the last row is not nearly empty."""
    count = len(figure.panels)
    if figure.chart in ("rates", "accuracy-dots") or count < 3:
        return 2
    return 4 if count % 4 == 0 or count == 7 else 3


def _last_value(panel: Panel, label: str) -> str:
    found = [c.last for c in panel.curves if c.label == label]
    return f"{found[0]:.2f}" if found and found[0] is not None else "\N{EN DASH}"


def _format_difference(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
