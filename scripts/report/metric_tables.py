"""The section of results: metrics of the variants, with their differences from the baseline."""

import math
from html import escape

import breakdown
import plots
from markup import folded, legend, number, picture, signed, swatch, with_unit
from results import BOUNDS, Metric, Results, Variant

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
MANY = 4  # variants beside which a metric a row is no longer readable


def delta(metric: Metric, base: Metric, interval: bool = True) -> str:
    """Difference and interval: in % of the baseline, in points where the metric is a share or the baseline 0."""
    if metric.difference is None:
        return ""
    scale, unit = base.scale
    if metric.difference == 0 == metric.low == metric.high:
        return "<b>0</b>"
    text = f"<b>{BOUNDS.get(metric.verdict, '')}{signed(metric.difference * scale)}{unit}</b>"
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


def cell(v: Variant, base: Variant, name: str, interval: bool = True) -> str:
    m = v.metrics[name]
    verdict = m.verdict if v is not base else ""
    mark = f'<span class=mark title="{escape(verdict)}">{SIGNS.get(verdict, "")}</span>' if verdict in SIGNS else ""
    seen = seen_from(m, base.metrics[name])
    change = f"<div class=delta>{delta(m, base.metrics[name], interval)} {mark}</div>" if v is not base else ""
    if seen:
        change += f"<div class=delta>{seen}</div>"
    value = f"<div class=value>{'≥ ' if m.is_bound else ''}{with_unit(m.value, m.unit)}</div>"
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
        "repeats. ≥ or ≤ right before a number: at least, at most, and not judged. All others are exploratory: of 20 intervals one is expected to miss the truth."
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
