"""Plots as SVG texts. One colour a variant, dark text on white, a light grid; the same data gives the same bytes."""

import io
import math

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter  # noqa: E402

from results import BINS, Results, Variant  # noqa: E402,F401

INK, MUTED, GRID, GHOST = "#1f2933", "#5b6673", "#e4e8ec", "#d0d5db"
BASELINE = "#4a5560"
PALETTE = ["#0072b2", "#d55e00", "#009e73", "#b8559b", "#c78500", "#2fa4d9", "#6f4fb3", "#8a4b2a", "#66770a"]
FOREST_MOST = 200.0  # % of the baseline that the plot of differences reaches
MOST = 1 + len(PALETTE)  # variants that plots show

plt.rcParams.update(
    {
        "svg.hashsalt": "patchbay",
        "svg.fonttype": "path",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "text.color": INK,
        "text.parse_math": False,  # a $ of a name is no formula
        "axes.labelcolor": MUTED,
        "axes.edgecolor": GHOST,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.7,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.major.size": 0,
        "xtick.major.pad": 5,
        "ytick.major.size": 0,
        "xtick.minor.size": 0,
        "lines.solid_capstyle": "round",
        "lines.solid_joinstyle": "round",
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
    }
)


def colours(results: Results) -> dict[int, str]:
    """Of the variants that plots show: the baseline and the first ones after it."""
    others = [v for v in results.variants if v is not results.baseline][: len(PALETTE)]
    return {results.baseline.id: BASELINE, **{v.id: colour for v, colour in zip(others, PALETTE)}}


def shown_variants(results: Results, of: dict[int, str]) -> list[Variant]:
    return [v for v in results.variants if v.id in of]


def as_svg(figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.06)
    plt.close(figure)
    return out.getvalue()


def duration(ms: float) -> str:
    """1500 → 1.5 s, 0.2 → 200 µs."""
    if ms <= 0:
        return "0"
    for factor, unit in ((1e-3, "s"), (1, "ms"), (1e3, "µs")):
        if ms * factor >= 0.9995 or unit == "µs":
            return f"{ms * factor:.3g} {unit}"
    return ""


def latency_cdf(results: Results, of: dict[int, str], name: str, slo_ms: float | None, what: str) -> str | None:
    """The share of requests (or gaps) that took at most so long."""
    data = [(v, v.latencies[name]) for v in shown_variants(results, of) if len(v.latencies.get(name, ()))]
    if not data:
        return None
    figure, axes = plt.subplots(figsize=(5.4, 3.1))
    shares = np.concatenate((np.linspace(0, 0.98, 197), np.linspace(0.981, 1, 40)))
    low = min(float(np.quantile(values, 0.005)) for _, values in data)
    high = max(float(values[-1]) for _, values in data)
    if slo_ms:
        high = max(high, slo_ms * 1.05)
    log = low > 0 and high / low > 30
    for v, values in data:
        axes.plot(
            np.quantile(values, shares),
            shares,
            color=of[v.id],
            linewidth=2.4 if v.is_baseline else 1.7,
            zorder=3 if v.is_baseline else 4,
        )
    if log:
        axes.set_xscale("log")
        subs = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=subs, numticks=20))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(low * 0.9, high * 1.08)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlim(0, high * 1.04)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.9, 1])
    axes.set_ylim(0, 1.01)
    axes.set_ylabel(f"share of {what}")
    if slo_ms:
        axes.axvline(slo_ms, color=INK, linewidth=0.9, linestyle=(0, (1, 2)), zorder=2)
        axes.annotate(
            f"objective {duration(slo_ms)}",
            (slo_ms, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=7.5,
            color=MUTED,
        )
    return as_svg(figure)


def time_series(results: Results, of: dict[int, str], name: str) -> str | None:
    """A row a variant: its own curve filled, those of the others in grey."""
    data = [v for v in shown_variants(results, of) if v.series]
    if not data:
        return None
    rows = len(data)
    figure, all_axes = plt.subplots(
        rows, 1, figsize=(4.6, 0.35 + (1.25 if rows <= 5 else 0.95) * rows), sharex=True, sharey=True, squeeze=False
    )
    highest = max(float(v.series.values[name].max()) for v in data)
    for axes, v in zip(all_axes[:, 0], data):
        for other in data:
            if other is not v:
                axes.stairs(other.series.values[name], other.series.edges, color=GHOST, linewidth=0.8, zorder=2)
        axes.stairs(v.series.values[name], v.series.edges, color=of[v.id], linewidth=1.2, zorder=4)
        axes.stairs(v.series.values[name], v.series.edges, color=of[v.id], alpha=0.16, fill=True, zorder=3)
        if name == "queue" and len(v.series.arrivals):  # when requests came
            axes.plot(
                v.series.arrivals,
                np.full(len(v.series.arrivals), -0.05),
                "|",
                color=INK,
                markersize=3.5,
                markeredgewidth=0.6,
                transform=axes.get_xaxis_transform(),
                clip_on=False,
                zorder=5,
            )
        axes.set_title(v.short, loc="left", fontsize=8.5, color=of[v.id], fontweight="bold", pad=3)
        for at, what in v.markers:
            colour = "#b42318" if what == "fault" else INK
            axes.axvline(at, color=colour, linewidth=1, linestyle=(0, (2, 2)), zorder=6)
            if what != "fault":
                axes.annotate(what, (at, 1), xycoords=("data", "axes fraction"), xytext=(3, -2), textcoords="offset points",
                              fontsize=7, color=colour, va="top", zorder=7)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=name != "kv"))
        if name == "kv":
            axes.yaxis.set_major_formatter(PercentFormatter(100, decimals=0 if highest > 4 else 1, symbol=" %"))
    axes.set_ylim(0, highest * 1.08 or 1)
    axes.set_xlim(0, max(float(v.series.edges[-1]) for v in data))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda s, _: f"{s:g} s"))
    axes.tick_params(axis="x", pad=5)
    figure.tight_layout(h_pad=0.7)
    return as_svg(figure)


def glance(results: Results, of: dict[int, str], names: list[str]) -> str | None:
    """The values themselves: a panel a metric, a bar a variant, the baseline on top."""
    shown = [results.baseline] + [v for v in shown_variants(results, of) if v is not results.baseline]
    panels = [n for n in names if any(v.metrics.get(n) and v.metrics[n].value is not None for v in shown)]
    if not panels:
        return None
    figure, all_axes = plt.subplots(
        1, len(panels), figsize=(2.4 * len(panels), 0.75 + 0.3 * len(shown)), sharey=True, squeeze=False
    )
    for axes, n in zip(all_axes[0], panels):
        metrics = [v.metrics[n] for v in shown]
        values = [m.value or 0.0 for m in metrics]
        axes.barh(range(len(shown)), values, height=0.66, color=[of[v.id] for v in shown])
        for y, m in enumerate(metrics):
            size = "≥ " if m.is_bound else ""
            size += f"{m.value or 0:,.0f}" if (m.value or 0) >= 100 else f"{m.value or 0:.3g}"
            text = "–" if m.value is None else duration(m.value) if m.unit == "ms" else f"{size} {m.unit}"
            axes.annotate(text, (m.value or 0.0, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
        axes.set_xlim(0, max(values) * 1.5 or 1)  # room for the texts
        axes.set_ylim(len(shown) - 0.45, -0.55)
        axes.set_yticks(range(len(shown)), [v.short for v in shown], color=INK)
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        better = {"higher": "more is better", "lower": "less is better"}.get(metrics[0].better, "")
        axes.set_title(metrics[0].label, loc="left", fontsize=9.5, fontweight="bold", pad=15)
        axes.annotate(
            better,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=7.5,
            color=MUTED,
        )
    figure.tight_layout(w_pad=1.6)
    return as_svg(figure)


def forest(results: Results, of: dict[int, str], names: list[str]) -> str | None:
    """Differences from the baseline with their 95 % intervals, in % of it, of shares in points; a filled dot is a verdict."""
    base = results.baseline
    others = [v for v in shown_variants(results, of) if v is not base]
    rows = [
        n
        for n in names
        if base.metrics.get(n)
        and base.metrics[n].is_on_scale
        and any(v.metrics[n].drawn_difference is not None for v in others)
    ]
    if not others or not rows:
        return None
    pitch = 0.13 if len(others) > 4 else 0.17
    figure, axes = plt.subplots(figsize=(9.6, 0.7 + len(rows) * (0.16 + pitch * len(others))))
    beyond = []
    extent = 10.0  # in %, to the right; what lies beyond is an arrow at the edge
    for i, n in enumerate(rows):
        scale, unit = base.metrics[n].scale
        for k, v in enumerate(others):
            m = v.metrics[n]
            if m.drawn_difference is None:
                continue
            y = i + (k - (len(others) - 1) / 2) * (0.72 / max(len(others), 1))
            sure = m.verdict in ("better", "worse", "different")
            if m.low is not None:
                axes.plot(
                    [m.low * scale, m.high * scale],
                    [y, y],
                    color=of[v.id],
                    linewidth=1.8,
                    alpha=1 if sure else 0.55,
                    zorder=3,
                )
                extent = max(extent, *(min(abs(x * scale), FOREST_MOST) for x in (m.low, m.high)))
            if m.difference * scale > FOREST_MOST:
                beyond.append((m.difference * scale, unit, y, of[v.id]))
                continue
            axes.plot(
                m.difference * scale,
                y,
                "o",
                markersize=5,
                color=of[v.id],
                markerfacecolor=of[v.id] if sure else "white",
                zorder=4,
            )
        good = {"higher": "more is better", "lower": "less is better"}.get(base.metrics[n].better, "")
        axes.annotate(
            good,
            (1.0, i),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            fontsize=7.5,
            color=MUTED,
            va="center",
        )
        if i % 2:
            axes.axhspan(i - 0.5, i + 0.5, color="#f6f8fa", zorder=0)
    axes.axvline(0, color=BASELINE, linewidth=1.2, zorder=2)
    for value, unit, y, colour in beyond:
        axes.plot(extent * 1.02, y, ">", markersize=5, color=colour, zorder=4)
        axes.annotate(
            f"{value:+,.0f}{unit}",
            (extent * 1.02, y),
            xytext=(-6, 0),
            textcoords="offset points",
            fontsize=7.5,
            color=colour,
            ha="right",
            va="center",
            zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [base.metrics[n].label for n in rows], color=INK)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    leftmost = min(
        (m.low if m.low is not None else m.difference) * base.metrics[n].scale[0]
        for n in rows
        for v in others
        if (m := v.metrics[n]).drawn_difference is not None
    )
    axes.set_xlim(max(-105.0, min(-8.0, leftmost * 1.08)), extent * 1.06)
    axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: "0" if math.isclose(x, 0, abs_tol=1e-9) else f"{x:+g} %".replace("-", "−"))
    )
    points = any(base.metrics[n].scale[1] == " pp" for n in rows)
    axes.set_xlabel(f"difference from {base.short}" + (", of shares in percentage points" if points else ""))
    return as_svg(figure)
