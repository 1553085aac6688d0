"""report.html: one self-contained file. Everything that came from a model or a framework is escaped by the template."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.compare.drill_evidence import short
from harness.compare.statistics import INTERVAL_NOTE
from harness.report import format as fmt
from harness.report.drills import counts_of, ending, items_of, title_of
from harness.report.figures.style import adapter_color
from harness.report.headlines import HEADLINES
from harness.report.ingested import series_lines, spoken
from harness.report.judgements import JUDGED, baselines, judged_view, null_words
from harness.report.learning import LEARNING, check_title
from harness.report.model import REPORT_SCHEMA, Figure, ReportModel
from harness.report.table import comparison, unit_beside
from harness.report.views import axes_view, cells_view, clean, completions_view, fidelity_view, visible

WIDE = 5
"""From this many columns a table scrolls within its own box on every screen."""


def render_html(model: ReportModel, figures: Path) -> str:
    """The page; `figures` is the folder with the SVG files that `draw_figures` wrote."""
    template = environment().get_template("report.html.j2")
    return template.render(**context_of(model, lambda figure: _data_uri(figure, figures)))


def environment(*first: BaseLoader) -> Environment:
    """The templates of a report with the filters that they use; `first` are asked for a template before them."""
    found = Environment(
        loader=ChoiceLoader([*first, PackageLoader("harness.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"number": fmt.number, "quantity": fmt.quantity, "times": fmt.times, "words": fmt.words}
    found.filters |= {"setting": fmt.setting, "visible": visible, "pretty": _pretty, "unit_beside": unit_beside}
    found.filters |= {"check_title": check_title}
    found.filters |= {"drill_items": items_of, "drill_title": title_of, "drill_ending": ending, "short": short}
    return found


def _harmless(value: Any) -> Any:
    """No expression of the template prints an invisible character, whoever wrote its text."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def context_of(model: ReportModel, image: Callable[[Figure], str]) -> dict[str, Any]:
    """What `report.html.j2` prints; `image` says where a page finds the picture of a figure."""
    return {
        "model": model,
        "tracks": [
            {"name": track, "headlines": comparison(model, track, HEADLINES), "all": comparison(model, track)}
            for track in model.tracks
        ],
        "interval_note": INTERVAL_NOTE,
        "axes": axes_view(model),
        "fidelity": fidelity_view(model),
        "cells": cells_view(model),
        "completions": completions_view(model),
        "drills": counts_of(model),
        "ingested": spoken(model),
        "series_lines": series_lines(model),
        "learning_note": LEARNING,
        "judged": judged_view(model),
        "judged_note": JUDGED,
        "baselines": baselines(model),
        "null_words": null_words(model.null_test),
        "colors": {name: adapter_color(name, model.names) for name in model.names},
        "image": image,
        "wide": WIDE,
        "schema": REPORT_SCHEMA,
    }


def _pretty(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False)


def _data_uri(figure: Figure, folder: Path) -> str:
    """The figure as a data URI: an image runs no script and reaches no network."""
    content = base64.b64encode((folder / f"{figure.name}.svg").read_bytes()).decode("ascii")
    return f"data:image/svg+xml;base64,{content}"
