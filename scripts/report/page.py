"""The report as one HTML text: nothing in it is loaded from anywhere."""

from html import escape
from pathlib import Path

import plots
from classes import class_section
from curves import capacity_section, gantt_section, latency_section, step_section, time_section, tradeoff_section
from markup import number, signed, swatch, table
from metric_tables import results_section
from provenance import configuration_section, provenance_section
from results import Results


def header(r: Results) -> str:
    info = r.info
    state = {"complete": "complete", "interrupted": "interrupted: results are partial"}.get(
        info["end"], "unfinished: no statistics yet"
    )
    valid, superseded = (sum(run[column] for run in r.runs) for column in ("valid", "superseded"))
    facts = [
        info["started"].replace("T", " ").replace("Z", " UTC"),
        f"{len(r.variants)} variants × {info['repeats']} repeats",
        f"{valid} of {len(r.runs) - superseded} runs valid" + (f", {superseded} more superseded" if superseded else ""),
        f"seed {info['seed']}",
        f"{info['cpu']}, {info['cores']} cores",
        f"patchbay {info['version']}",
    ]
    notices = "".join(f"<li>{escape(n)}</li>" for n in r.notices)
    if info["end"] != "complete":
        notices = f"<li>{state}</li>" + notices
    conclusion = escape(info["conclusion"] or "No conclusion: the experiment did not reach its end.")
    return (
        f"<header><p class=kicker>Patchbay experiment · {escape(info['name'])}</p>"
        f"<h1>{escape(info['question'] or info['name'])}</h1>"
        + f"<p class='conclusion{'' if info['winner'] else ' open'}'>{conclusion}</p>"
        + (f"<ul class=notices>{notices}</ul>" if notices else "")
        + "<p class=facts>"
        + "".join(f"<span>{escape(f)}</span>" for f in facts)
        + "</p></header>"
    )


def quality_section(r: Results, of: dict[int, str]) -> str:
    if not r.quality:
        return ""
    names = {v.id: v for v in r.variants}
    rows = []
    for q in r.quality:
        v = names[q["variant_id"]]
        change = "" if v is r.baseline else f"{signed(100 * (q['ratio'] - 1))} %"
        if change and q["low"] is not None:
            change += f" <span class=interval>{signed(100 * (q['low'] - 1))} … {signed(100 * (q['high'] - 1))}</span>"
        shares = ["" if v is r.baseline else f"{number(100 * q[key])} %" for key in ("same_choice", "same_outputs", "same_tokens")]
        rows.append([f"{swatch(of.get(v.id))}{escape(v.short)}", number(q["perplexity"]), change, *shares])
    head = ["", "perplexity", "difference, 95 % interval", "same choice", "same outputs", "tokens before a difference"]
    first = r.quality[0]
    note = (
        f"{first['predicted_tokens']:,} tokens of a text, and {first['outputs']} greedy continuations; shares are of those that "
        "equal the baseline's. The interval is over windows of the text."
    )
    return f"<section><h2>Quality</h2><p class=muted>{note}</p>{table(head, rows)}</section>"


def page(r: Results) -> str:
    of = plots.colours(r)
    style = (Path(__file__).parent / "style.css").read_text()
    body = (
        header(r)
        + results_section(r, of)
        + quality_section(r, of)
        + tradeoff_section(r, of)
        + capacity_section(r, of)
        + latency_section(r, of)
        + class_section(r, of)
        + time_section(r, of)
        + gantt_section(r, of)
        + step_section(r)
        + configuration_section(r, of)
        + provenance_section(r)
    )
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(r.info['name'])} – Patchbay</title><style>\n{style}</style></head><body><main>{body}"
        "<footer>All numbers come from results.sqlite beside this file; docs/experiments.md defines them.</footer>"
        "</main></body></html>\n"
    )
