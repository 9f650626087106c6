"""Sections that are figures: latencies, time, throughput against latency, capacity, requests and steps."""

import breakdown
import gantt
import plots
import sweeps
from markup import legend, picture
from results import Results


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
        "A point: a run of a search, a repeat's requests at one rate; dashed: a variant's capacity, the mean over the "
        "repeats; dotted: the share that is enough."
    )
    return f"<section><h2>Capacity</h2><p class=muted>{note}</p>{plot}</section>" if plot else ""


def gantt_section(r: Results, of: dict[int, str]) -> str:
    plot = picture(gantt.plot(r, r.gantt, of), "some requests over time", "Some requests over time", "wide")
    if not plot:
        return ""
    note = (
        f"Repeat {r.series_repeat + 1}, the same requests for every variant: the {gantt.SLOWEST} that took longest in any of "
        f"them (•) and others, evenly by arrival. Numbers are those of the requests; ×: preempted. At most {gantt.PANELS} variants."
    )
    return f"<section><h2>Requests</h2><p class=muted>{note}</p>{plot}</section>"


def step_section(r: Results) -> str:
    figures = [picture(plot, title, title) for title, plot in breakdown.step_plots(r, r.breakdown)]
    if not any(figures):
        return ""
    return f"<section><h2>Inside a step</h2><div class=grid2>{''.join(figures)}</div></section>"
