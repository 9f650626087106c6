"""Numbers, tables and figures as HTML."""

import base64
import math
from html import escape

import plots
from results import Results

MINUS = "−"


def number(value: float | None) -> str:
    """Three significant digits, thousands parted."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3 if size >= 0.01 else 5
    return f"{value:,.{digits}f}".replace("-", MINUS)


def signed(value: float) -> str:
    """For differences: one decimal, more below 1, none from 100 on."""
    size = abs(value)
    text = f"{value:+,.{0 if size >= 99.95 else 1 if size >= 0.95 else 2}f}"
    return "0" if float(text.replace(",", "")) == 0 else text.replace("-", MINUS)


def with_unit(value: float | None, unit: str) -> str:
    if value is None or math.isnan(value):
        return "–"
    if unit == "ms":
        for factor, name in ((1e-3, "s"), (1, "ms"), (1e3, "µs")):
            if value * factor >= 0.9995:
                return f"{number(value * factor)} {name}"
    return f"{number(value)} {unit}".replace(" per run", "").strip()


def swatch(colour: str | None) -> str:
    return f'<span class=swatch style="background:{colour}"></span>' if colour else ""


def picture(svg: str | None, alt: str, caption: str, kind: str = "") -> str:
    if svg is None:
        return ""
    data = base64.b64encode(svg.encode()).decode()
    image = f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'
    return f'<figure class="{kind}"><figcaption>{escape(caption)}</figcaption>{image}</figure>'


def table(head: list[str], rows: list[list[str]], kind: str = "") -> str:
    """Cells are HTML already."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class=scroll><table class="{kind}"><thead><tr>'
        + "".join(f"<th>{h}</th>" for h in head)
        + f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def legend(r: Results, of: dict[int, str]) -> str:
    items = []
    for v in plots.shown_variants(r, of):
        note = " (baseline)" if v is r.baseline else ""
        items.append(f"<span title=\"{escape(v.name)}\">{swatch(of[v.id])}{escape(v.short)}{note}</span>")
    hidden = len(r.variants) - len(of)
    if hidden > 0:
        items.append(f"<span class=muted>and {hidden} more, in the tables only</span>")
    return "<p class=legend>" + "".join(items) + "</p>"
