"""The report as one HTML text: nothing in it is loaded from anywhere."""

import base64
import math
from html import escape
from pathlib import Path

import breakdown
import gantt
import plots
import sweeps
from results import Metric, Results, Variant

GROUPS = [
    ("Throughput", ("output_throughput", "total_throughput", "request_throughput", "offered_rate")),
    ("Capacity: the highest rate that keeps the objective", ("capacity",)),
    ("Goodput", ("goodput_share", "goodput_rate")),
    ("Time to first token", ("ttft_mean", "ttft_p50", "ttft_p90", "ttft_p99")),
    ("Time per output token, a request's mean", ("tpot_mean", "tpot_p50", "tpot_p90", "tpot_p99")),
    ("Inter-token latency", ("itl_mean", "itl_p50", "itl_p90", "itl_p99")),
    ("End to end", ("e2e_mean", "e2e_p50", "e2e_p90", "e2e_p99")),
    (
        "Normalised latency: end to end, per output token",
        ("normalised_mean", "normalised_p50", "normalised_p90", "normalised_p99"),
    ),
    (
        "Queue: requests and tokens that wait, and for how long the oldest one",
        (
            "waiting_mean",
            "waiting_p99",
            "waiting_tokens_mean",
            "waiting_tokens_p99",
            "oldest_wait_mean",
            "oldest_wait_p99",
        ),
    ),
    (
        "KV cache and preemption",
        ("kv_mean", "kv_max", "kv_fragmentation", "prefix_hit_share", "preemptions", "recomputed_tokens"),
    ),
    ("Batches and drafts", ("batch_sequences", "batch_tokens", "acceptance", "tokens_per_step")),
]
PREFIXES = [  # of the names of metrics that belong together, after those of GROUPS
    ("Graphs: steps that replayed one, why others did not, padding", ("graph_", "padding_share")),
    ("Time inside plugins, by call", ("time_",)),
    ("Plugins' own metrics", ("plugin.",)),
]
SIGNS = {"better": "▲", "worse": "▼", "different": "◆", "no difference shown": "=", "too few repeats": "?"}
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


def delta(metric: Metric, base: Metric, interval: bool = True) -> str:
    """Difference and interval: in % of the baseline, in points where the metric is a share or the baseline 0."""
    if metric.difference is None:
        return ""
    scale, unit = base.scale
    if metric.difference == 0 == metric.low == metric.high:
        return "<b>0</b>"
    text = f"<b>{signed(metric.difference * scale)}{unit}</b>"
    if interval and metric.low is not None and metric.high is not None:
        text += f" <span class=interval>{signed(metric.low * scale)} … {signed(metric.high * scale)}</span>"
    return text


def seen_from(metric: Metric, base: Metric) -> str:
    """Beside "no difference shown": from which size on one would have been."""
    if metric.verdict != "no difference shown" or metric.detectable is None:
        return ""
    if metric.difference == 0 == metric.low == metric.high:
        return ""
    scale, unit = base.scale
    size = metric.detectable * scale
    if size > {" %": 1000, " pp": 100}.get(unit, math.inf):
        return " <span class=interval>noise</span>"
    return f" <span class=interval>≥ {number(size)}{unit}</span>"


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


# ---- sections ----
def header(r: Results) -> str:
    info = r.info
    state = {"complete": "complete", "interrupted": "interrupted: results are partial"}.get(
        info["end"], "unfinished: no statistics yet"
    )
    valid = sum(run["valid"] for run in r.runs)
    facts = [
        info["started"].replace("T", " ").replace("Z", " UTC"),
        f"{len(r.variants)} variants × {info['repeats']} repeats",
        f"{valid} of {len(r.runs)} runs valid",
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


def legend(r: Results, of: dict[int, str]) -> str:
    items = []
    for v in plots.shown_variants(r, of):
        note = " (baseline)" if v is r.baseline else ""
        items.append(f"<span title=\"{escape(v.name)}\">{swatch(of[v.id])}{escape(v.short)}{note}</span>")
    hidden = len(r.variants) - len(of)
    if hidden > 0:
        items.append(f"<span class=muted>and {hidden} more, in the tables only</span>")
    return "<p class=legend>" + "".join(items) + "</p>"


MANY = 4  # variants beside which a metric a row is no longer readable


def cell(v: Variant, base: Variant, name: str, interval: bool = True) -> str:
    m = v.metrics[name]
    verdict = m.verdict if v is not base else ""
    mark = f'<span class=mark title="{escape(verdict)}">{SIGNS.get(verdict, "")}</span>' if verdict in SIGNS else ""
    seen = seen_from(m, base.metrics[name])
    change = f"<div class=delta>{delta(m, base.metrics[name], interval)} {mark}</div>" if v is not base else ""
    if seen:
        change += f"<div class=delta>{seen}</div>"
    value = f"<div class=value>{with_unit(m.value, m.unit)}</div>"
    return f'<td class="{verdict.replace(" ", "-")}">{value}{change}</td>'


def table_of_variants(ordered: list[Variant], names: list[str], of: dict[int, str]) -> str:
    """A variant a row, a primary metric a column."""
    base = ordered[0]
    head = "".join(f"<th>{escape(base.metrics[n].label)}</th>" for n in names)
    rows = "".join(
        f'<tr><th scope=row title="{escape(v.name)}">{swatch(of.get(v.id))}{escape(v.short)}'
        + ("<small> baseline</small>" if v is base else "")
        + "</th>"
        + "".join(cell(v, base, n, interval=False) for n in names)
        + "</tr>"
        for v in ordered
    )
    return (
        "<div class=scroll><table class=results><thead><tr><th>variant</th>"
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def results_section(r: Results, of: dict[int, str]) -> str:
    base = r.baseline
    if not base.metrics:
        return ""
    ordered = [base] + [v for v in r.variants if v is not base]
    head = ["metric"] + [
        f"{swatch(of.get(v.id))}{escape(v.short)}" + ("<small>baseline</small>" if v is base else "") for v in ordered
    ]
    rows: list[str] = []
    primary = [n for n in r.primary if any(v.metrics[n].value is not None for v in ordered)]
    many = len(ordered) > MANY
    groups = [("Primary: verdicts, corrected for their number", primary)]
    folded_from = None
    groups += [(title, [n for n in names if n not in primary]) for title, names in GROUPS]
    groups += [(title, [n for n in base.metrics if n.startswith(starts) and n not in primary]) for title, starts in PREFIXES]
    for title, names in groups:
        if folded_from is None and rows:
            folded_from = len(rows)
        present = [n for n in names if n in base.metrics and any(v.metrics[n].value is not None for v in ordered)]
        if present:
            rows.append(f'<tr class=group><th colspan="{len(head)}">{escape(title)}</th></tr>')
        for n in present:
            cells = [f"<th scope=row>{escape(base.metrics[n].label)}</th>"]
            cells += [cell(v, base, n) for v in ordered]
            rows.append("<tr>" + "".join(cells) + "</tr>")
    compared = [v for v in ordered if v.comparison]
    pairs: dict[str, list[str]] = {}
    for v in compared:
        count, repeats, independent, same = v.comparison
        what = (
            f"{count:,} requests in {repeats} repeats are paired with the baseline's"
            if count
            else "no request is paired with the baseline's"
        )
        if independent < repeats:
            what += f", {independent} of which hold information of their own"
        pairs.setdefault(
            what + (f", {100 * same:.3g} % with the same output tokens" if same is not None else ""), []
        ).append(v.name)
    notes = [r.info["counted"]] if r.info["counted"] else []
    notes += [
        f"{what} ({'each variant' if len(names) == len(compared) else ', '.join(names)})"
        for what, names in pairs.items()
    ]
    how = (
        "A value is the mean over repeats, of times and rates the geometric one. Under it: the difference from the baseline "
        "and its 95 % interval by Student's t over repeats, in % of the baseline (pp: percentage points). Primary "
        "metrics have verdicts, corrected for their number (Holm), so that an interval may leave out 0 without one: "
        "▲ better, ▼ worse, ◆ different, neither good nor bad, = no difference shown, and from which size (≥) on 9 of "
        "10 such experiments would have shown one (noise: only more than 1,000 %, of shares 100 pp), ? too few independent "
        "repeats. All others are exploratory: of 20 intervals one is expected to miss the truth."
    )
    slo = [
        f"{name} ≤ {plots.duration(r.info[key])}"
        for name, key in (("TTFT", "slo_ttft_ms"), ("TPOT", "slo_tpot_ms"), ("E2E", "slo_e2e_ms"))
        if r.info[key]
    ]
    if slo:
        notes.append("goodput counts requests with " + " and ".join(slo))
    forest = picture(
        breakdown.forest_by_variant(r, primary) if many else plots.forest(r, of, primary),
        "differences from the baseline with intervals",
        "Primary metrics: differences from the baseline, with 95 % intervals. Filled: a verdict; hollow: none.",
        "wide",
    )

    def metric_table(lines: list[str]) -> str:
        return (
            "<div class=scroll><table class=results><thead><tr>"
            + "".join(f"<th>{h}</th>" for h in head)
            + "</tr></thead><tbody>"
            + "".join(lines)
            + "</tbody></table></div>"
        )

    cut = folded_from if folded_from is not None else len(rows)
    tables = table_of_variants(ordered, primary, of) if many else metric_table(rows[:cut])
    title = "All metrics, with intervals" if many else "All other metrics: intervals without verdicts"
    rest = folded(title, metric_table(rows if many else rows[cut:])) if rows[cut:] or many else ""
    first = "" if many else picture(
        plots.glance(r, of, primary[:4]),
        "headline metrics of each variant",
        "At a glance",
        "wide",
    )
    return (
        f"<section><h2>Results</h2>{first}{'' if many else legend(r, of)}{tables}{forest}{rest}"
        f"<p class=muted>{how}</p><p class=muted>{escape('; '.join(notes))}</p></section>"
    )


def latency_section(r: Results, of: dict[int, str]) -> str:
    parts = [
        ("ttft", "Time to first token (TTFT)", "requests", r.info["slo_ttft_ms"]),
        ("tpot", "Time per output token, a request's mean (TPOT)", "requests", r.info["slo_tpot_ms"]),
        ("itl", "Gaps between tokens (ITL)", "gaps", None),
        ("e2e", "End to end (E2E)", "requests", r.info["slo_e2e_ms"]),
    ]
    figures = [
        picture(plots.latency_cdf(r, of, name, slo, what), f"CDF of {title}", title) for name, title, what, slo in parts
    ]
    if not any(figures):
        return ""
    return (
        "<section><h2>Latencies</h2><p class=muted>Cumulative distributions over the requests of all runs that count: "
        f"a curve further left is faster.</p>{legend(r, of)}<div class=grid2>{''.join(figures)}</div></section>"
    )


def time_section(r: Results, of: dict[int, str]) -> str:
    figures = [
        picture(plots.time_series(r, of, name), f"{caption} over time", caption)
        for name, caption in (
            ("queue", "Queue: requests waiting"),
            ("kv", "KV utilisation: blocks in use"),
            ("batch", "Batch: sequences in a step"),
        )
    ]
    if not any(figures):
        return ""
    return (
        f"<section><h2>Over time</h2><p class=muted>Repeat {r.series_repeat + 1}, which has the same requests for every "
        f"variant (ticks under the queue; dashed: a swap, red: a fault of a plugin). Means over {plots.BINS} equal intervals; grey: the other variants.</p>"
        f"<div class=grid3>{''.join(figures)}</div></section>"
    )


def tradeoff_section(r: Results, of: dict[int, str]) -> str:
    plot = picture(
        breakdown.tradeoffs(r, r.breakdown, of),
        "throughput against latency",
        "Small: a run; large: the mean of a variant; dashed: variants that none beats in both (Pareto front).",
        "wide",
    )
    sweep = picture(
        sweeps.sweep_plot(r, r.sweep),
        f"latency over throughput by {r.sweep.path}",
        f"Latency over throughput as {r.sweep.path} changes (numbers beside the points)",
        "wide",
    )
    if not plot and not sweep:
        return ""
    return f"<section><h2>Throughput against latency</h2>{legend(r, of)}{plot}{sweep}</section>"


def capacity_section(r: Results, of: dict[int, str]) -> str:
    plot = picture(
        sweeps.capacity_plot(r, r.searches, of, r.wanted_share),
        "share of requests that kept the objective, over the rate",
        "Share of requests that kept the objective, over the rate of arrivals",
        "wide",
    )
    note = (
        "Small: a run of a search, a repeat's requests at one rate; line: their means; dashed: a variant's capacity, the "
        "mean over the repeats; dotted: the share that is enough."
    )
    return f"<section><h2>Capacity</h2><p class=muted>{note}</p>{plot}</section>" if plot else ""


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


def gantt_section(r: Results, of: dict[int, str]) -> str:
    plot = picture(gantt.plot(r, r.gantt, of), "some requests over time", "Some requests over time", "wide")
    if not plot:
        return ""
    note = (
        f"Repeat {r.series_repeat + 1}, the same requests for every variant: the {gantt.SLOWEST} that took longest in any of "
        f"them (•) and others, evenly by arrival. Numbers are those of the requests; ×: preempted. At most {gantt.PANELS} variants."
    )
    return f"<section><h2>Requests</h2><p class=muted>{note}</p>{plot}</section>"


def class_tables(r: Results, of: dict[int, str]) -> str:
    """As the terminal has them: what `by` asked for, with intervals."""
    out = ""
    base = r.baseline
    ordered = [base] + [v for v in r.variants if v is not base]
    for kind, classes in r.classes.items():
        present = {name for by in classes.values() for _, metrics in by.values() for name in metrics}
        names = [n for n in r.primary if n in present]
        if not names:
            continue
        head = "".join(f"<th>{escape(base.metrics[n].label)}</th>" for n in names)
        rows = ""
        for name, by in classes.items():
            count = by[base.id][0] if base.id in by else 0
            rows += f'<tr class=group><th colspan="{len(names) + 1}">{escape(name)} · {count:,} requests of {escape(base.short)}</th></tr>'
            for v in ordered:
                if v.id not in by:
                    continue
                cells = ""
                for n in names:
                    metric, from_base = by[v.id][1].get(n), by.get(base.id, (0, {}))[1].get(n)
                    if not metric:
                        cells += "<td>–</td>"
                        continue
                    change = f"<div class=delta>{delta(metric, from_base)}</div>" if v is not base and from_base else ""
                    cells += f"<td><div class=value>{with_unit(metric.value, metric.unit)}</div>{change}</td>"
                rows += f"<tr><th scope=row>{swatch(of.get(v.id))}{escape(v.short)}</th>{cells}</tr>"
        body = (
            "<div class=scroll><table class='results classes'><thead><tr><th>class</th>"
            f"{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
        title = f"By {kind.replace('_', ' ')}"
        out += f"<h3>{title}</h3>{body}" if len(classes) * len(ordered) <= 16 else folded(title, body)
    if not out:
        return ""
    note = "Means over repeats with 95 % intervals of the differences, without verdicts: hints for the next experiment."
    return f"<p class=muted>{note}</p>{out}"

def class_section(r: Results, of: dict[int, str]) -> str:
    out = ""
    for kind, groups in r.breakdown.classes.items():
        head = ["", *(escape(group) for group in groups)]
        rows = [
            [f"{swatch(of.get(v.id))}{escape(v.short)}"]
            + [
                " / ".join(plots.duration(x) if x == x else "–" for x in groups[group][v.id][1:])
                if v.id in groups[group]
                else "–"
                for group in groups
            ]
            for v in r.variants
        ]
        out += picture(
            breakdown.class_plot(r, r.breakdown, of, kind),
            f"TTFT by {kind}",
            f"TTFT by {kind}: from p50 (dot) to p99 (bar)",
            "wide",
        )
        out += folded(f"By {kind}: TTFT p50 / TTFT p99 / TPOT p50 / E2E p50", table(head, rows))
    tables = class_tables(r, of)
    if not out and not tables:
        return ""
    note = "Requests of all runs that count, pooled; without intervals or verdicts: a hint, no evidence."
    return f"<section><h2>By class</h2>{tables}<p class=muted>{note}</p>{out}</section>"


def step_section(r: Results) -> str:
    figures = [picture(plot, title, title) for title, plot in breakdown.step_plots(r, r.breakdown)]
    if not any(figures):
        return ""
    return f"<section><h2>Inside a step</h2><div class=grid2>{''.join(figures)}</div></section>"


def swaps_table(r: Results) -> str:
    """What took a slot in mid-run, a row for each run."""
    runs = {run["id"]: run for run in r.runs}
    names = {v.id: v.name for v in r.variants}
    rows = []
    for s in r.swaps:
        run = runs[s["run_id"]]
        state = s["state"] + (f" in phase {s['phase']}: {s['reason']}" if s["phase"] else "")
        happened = s["step"] is not None
        rows.append(
            [
                str(run["position"] + 1),
                escape(names[run["variant_id"]]),
                f"{escape(s['from_name'])} → {escape(s['task'])}",
                escape(state),
                f"{s['step']:,}" if happened else "–",
                f"{s['time_ns'] * 1e-9:.3f} s" if happened else "–",
                f"{s['pause_ns'] * 1e-3:.1f} µs" if happened else "–",
            ]
        )
    if not rows:
        return ""
    head = ["run", "variant", "swap", "outcome", "before step", "at", "pause"]
    short = len(rows) <= 10
    return "<h3>Swaps in mid-run</h3>" + (table(head, rows) if short else folded(f"All {len(rows)} swaps", table(head, rows)))


def configuration_section(r: Results, of: dict[int, str]) -> str:
    paths: dict[str, dict[int, tuple]] = {}
    for v in r.variants:
        for path, before, after, declared in v.differences:
            paths.setdefault(path, {})[v.id] = (before, after, declared)
    base = r.baseline
    others = [v for v in r.variants if v is not base]

    def cell(path: str, v: Variant) -> str:
        before = next(iter(paths[path].values()))[0]
        _, value, declared = paths[path].get(v.id, (None, before, True))
        text = "–" if value == "" else value
        short = text[:12] + "…" if path.endswith("sha256") and len(text) > 12 else text
        shown = f'<code title="{escape(text)}">{escape(short)}</code>'
        return shown if declared else f"<mark>{shown} not declared</mark>"

    out = "<section><h2>What ran</h2>"
    if paths:
        head = ["setting"] + [f"{swatch(of.get(v.id))}{escape(v.name)}" for v in [base] + others]
        rows = [[f"<code>{escape(p)}</code>"] + [cell(p, v) for v in [base] + others] for p in sorted(paths)]
        out += "<h3>Where the variants differ</h3>" + table(head, rows)
    used: dict[tuple, list[str]] = {}
    for v in r.variants:
        for p in v.plugins:
            used.setdefault((p["kind"], p["name"], p["version"], p["sha256"], p["build"]), []).append(v.name)
    rows = [
        [
            escape(kind),
            f"<b>{escape(name)}</b>",
            escape(version),
            f"<code>{sha}</code>",
            escape(build),
            "all" if len(names) == len(r.variants) else escape(", ".join(names)),
        ]
        for (kind, name, version, sha, build), names in sorted(used.items())
    ]
    out += "<h3>Plugins</h3>" + table(
        ["kind", "name", "version", "SHA-256 of the file", "build", "used by"], rows, "plugins"
    )
    out += swaps_table(r)
    for v in [base] + others:
        facts = "".join(
            f"<div><dt>{escape(k.replace('_', ' '))}</dt><dd>{escape(fact(k, x))}</dd></div>"
            for k, x in v.facts.items()
        )
        out += folded(f"{v.name}: effective configuration", f"<dl>{facts}</dl><pre>{escape(v.effective_yaml)}</pre>")
    return out + "</section>"


def fact(key: str, value) -> str:
    if key.endswith("_bytes") and isinstance(value, (int, float)):
        for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value >= size:
                return f"{value / size:.1f} {unit}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def lost(run: dict) -> str:
    """The share of the CPU time that went to other processes and to the host, and the clock."""
    if run["others_share"] is None:
        return "–"
    clock = f", {run['mhz'] / 1000:.2f} GHz" if run["mhz"] else ""
    return f"{100 * run['others_share']:.1f} % + {100 * run['steal_share']:.1f} % stolen{clock}"


def commit_of(info: dict) -> str:
    commit = info["git_commit"] or "not known"
    return commit + ", with changes" if info.get("git_changes") else commit


def provenance_section(r: Results) -> str:
    info = r.info
    names = {v.id: v.name for v in r.variants}
    facts = [
        ("processor", f"{info['cpu']}, {info['cores']} cores for this process"),
        ("memory", fact("memory_bytes", info["memory_bytes"])),
        ("system", f"{info['os']}, {info['kernel']}"),
        ("program", f"patchbay {info['version']}, {info['build']}"),
        ("commit", commit_of(info)),
        ("SHA-256 of the program", info.get("program_sha256") or "not known"),
        ("seed", info["seed"]),
        ("warm-up", f"{info['warmup_requests']} requests before each run, not counted"),
        ("file", info["spec_file"]),
    ]
    runs = [
        [
            str(run["position"] + 1),
            escape(names[run["variant_id"]]),
            str(run["repeat"] + 1),
            escape(run["seed"]),
            escape(run["started"]),
            f"{(run['duration_ns'] or 0) * 1e-9:.2f} s",
            lost(run),
            "valid" if run["valid"] else f"<mark>{'superseded' if run['superseded'] else escape(run['end'])}: {escape(run['reason'] or 'not valid')}</mark>",
        ]
        for run in r.runs
    ]
    return (
        "<section><h2>Provenance</h2><dl>"
        + "".join(f"<div><dt>{k}</dt><dd>{escape(str(v))}</dd></div>" for k, v in facts)
        + "</dl>"
        + f"<h3>Again</h3><pre>{escape(info['command'])}</pre>"
        + folded("The experiment file", f"<pre>{escape(info['spec_yaml'])}</pre>")
        + folded(
            f"All {len(runs)} runs in their order",
            table(["#", "variant", "repeat", "seed", "started", "duration", "CPU of others", "state"], runs),
        )
        + "</section>"
    )


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
