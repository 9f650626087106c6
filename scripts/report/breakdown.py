"""What lies inside a result: runs, steps and classes of requests, as plots."""

import math
import sqlite3
from dataclasses import dataclass, field

import numpy as np
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, MaxNLocator

from plots import BASELINE, GHOST, INK, MUTED, PALETTE, as_svg, duration, plt
from results import Results, Variant

PHASES = [  # column of `step`, what it is
    ("admit_ns", "admit"),
    ("plan_phase_ns", "plan"),
    ("apply_ns", "apply"),
    ("build_ns", "build batch"),
    ("run_ns", "run"),
    ("sample_phase_ns", "sample"),
    ("commit_ns", "commit"),
    ("publish_ns", "publish"),
]
CALLS = [
    ("forward_ns - attention_ns", "model"),
    ("attention_ns", "attention"),
    ("plan_ns", "scheduler"),
    ("sample_ns", "sampler"),
    ("propose_ns", "proposer"),
    ("kv_policy_ns", "kv_policy"),
    ("device_ns", "device"),
]
VERDICTS = {"better": "#0b6e4f", "worse": "#b42318", "different": INK}
CLASS_LIMIT = 8  # classes that are shown


@dataclass
class RunPoint:
    variant: int
    throughput: float  # output tokens per second
    ttft_p99: float  # ms
    e2e_p50: float


@dataclass
class Breakdown:
    points: list[RunPoint] = field(default_factory=list)
    phases: dict[int, list[float]] = field(default_factory=dict)  # by variant: ms a step, as PHASES
    calls: dict[int, list[float]] = field(default_factory=dict)  # likewise, as CALLS
    batches: dict[int, tuple[float, float]] = field(default_factory=dict)  # prefill and decode tokens a step
    classes: dict[str, dict[str, dict[int, tuple]]] = field(default_factory=dict)  # kind, class → requests, ms


def read(db: sqlite3.Connection, variants: list[Variant], runs: list[dict]) -> Breakdown:
    """runs: those that count."""
    out = Breakdown()
    requests: dict[int, list[tuple]] = {}
    for run in runs:
        rows = db.execute(
            "SELECT first_token_ns - arrival_ns, finish_ns - arrival_ns, output_tokens, prompt_tokens, tenant, priority,"
            " class, substr(token_ns, -8), length(token_ns) / 8, first_token_ns FROM request WHERE run_id = ? AND counted"
            " AND finish_reason IN ('stop', 'length', 'repetition') AND first_token_ns IS NOT NULL",
            (run["id"],),
        ).fetchall()
        requests.setdefault(run["variant_id"], []).extend(tuple(row) for row in rows)
        numbers = dict(db.execute("SELECT name, value FROM run_metric WHERE run_id = ?", (run["id"],)).fetchall())
        point = [numbers.get(name) for name in ("output_throughput", "ttft_p99", "e2e_p50")]
        if all(point):
            out.points.append(RunPoint(run["variant_id"], *point))
    sums = ", ".join(f"avg({column}) * 1e-6" for column, _ in PHASES + CALLS)
    for v in variants:
        ids = [str(run["id"]) for run in runs if run["variant_id"] == v.id]
        row = ids and db.execute(
            f"SELECT {sums}, avg(prefill_tokens), avg(decode_tokens) FROM step"
            f" WHERE scheduled_seqs > 0 AND run_id IN ({','.join(ids)})"
        ).fetchone()
        if row and row[0] is not None:
            out.phases[v.id] = [row[i] for i in range(len(PHASES))]
            out.calls[v.id] = [row[len(PHASES) + i] for i in range(len(CALLS))]
            out.batches[v.id] = (row[-2], row[-1])
    out.classes = classes_of(requests)
    return out


def classes_of(requests: dict[int, list[tuple]]) -> dict[str, dict[str, dict[int, tuple]]]:
    """By tenant, priority and the trace's class where there are several; by thirds of the prompts' lengths."""
    every = [row for rows in requests.values() for row in rows]
    if not every:
        return {}
    low, high = np.quantile([row[3] for row in every], [1 / 3, 2 / 3])
    kinds = {
        "tenant": lambda row: f"tenant {row[4]}",
        "priority": lambda row: f"priority {row[5]}",
        "class": lambda row: row[6] or "(none)",
        "prompt length": lambda row: (
            f"≤ {low:,.0f}" if row[3] <= low else f"≤ {high:,.0f}" if row[3] <= high else f"> {high:,.0f} tokens"
        ),
    }
    found: dict[str, dict[str, dict[int, tuple]]] = {}
    for kind, of in kinds.items():
        groups: dict[str, dict[int, list]] = {}
        for variant, rows in requests.items():
            for row in rows:
                groups.setdefault(of(row), {}).setdefault(variant, []).append(row)
        if len(groups) < 2:
            continue
        by_number = kind != "class"  # "tenant 12", "≤ 1,024", "> 1,024 tokens"
        order = sorted(groups, key=lambda g: (g[0] == ">", float(g.split()[1].replace(",", ""))) if by_number else g)
        found[kind] = {}
        for group in order:
            found[kind][group] = {}
            for variant, rows in groups[group].items():
                ttft = np.array([row[0] for row in rows]) * 1e-6
                # Of the first output, as the times are; a request may have others.
                tpot = np.array([(int.from_bytes(row[7], "little") - row[9]) / (row[8] - 1) for row in rows if row[8] > 1])
                tpot *= 1e-6
                found[kind][group][variant] = (
                    len(rows),
                    float(np.quantile(ttft, 0.5)),
                    float(np.quantile(ttft, 0.99)),
                    float(np.quantile(tpot, 0.5)) if len(tpot) else math.nan,
                    float(np.quantile([row[1] * 1e-6 for row in rows], 0.5)),
                )
    return found


# ---- plots ----
def pareto_front(means: list[tuple[float, float, Variant]]) -> list[tuple[float, float, Variant]]:
    """Those that none beats: as good in throughput and in latency, and better in one of them."""

    def beats(o, m) -> bool:
        return o[0] >= m[0] and o[1] <= m[1] and o[:2] != m[:2]

    return sorted((m for m in means if not any(beats(o, m) for o in means)), key=lambda m: m[0])


def tradeoffs(r: Results, b: Breakdown, of: dict[int, str]) -> str | None:
    """Throughput against latency: a small point a run, a large one a variant's mean; a line joins the Pareto front."""
    if not b.points:
        return None
    figure, all_axes = plt.subplots(1, 2, figsize=(9.6, 3.6))
    drawn = []
    for axes, field_name, label in zip(all_axes, ("ttft_p99", "e2e_p50"), ("TTFT p99", "E2E p50")):
        means = []
        for v in r.variants:
            own = [(p.throughput, getattr(p, field_name)) for p in b.points if p.variant == v.id]
            if not own:
                continue
            x, y = np.array(own).T
            colour = of.get(v.id, MUTED)
            axes.plot(x, y, ".", color=colour, markersize=4, alpha=0.45, zorder=3)
            means.append((float(np.exp(np.mean(np.log(x)))), float(np.exp(np.mean(np.log(np.maximum(y, 1e-9))))), v))
            axes.plot(*means[-1][:2], "o", color=colour, markersize=7, zorder=5)
        front = pareto_front(means)
        axes.plot([m[0] for m in front], [m[1] for m in front], color=BASELINE, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xlabel("output tokens per second (more is better)")
        axes.set_ylabel(f"{label} (less is better)")
        values = [p for p in (getattr(q, field_name) for q in b.points) if p > 0]
        if values and max(values) / min(values) > 20:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x >= 10 else f"{x:g}"))
        axes.margins(x=0.12, y=0.1)
        drawn.append((axes, front if len(means) > 5 else means))
    figure.tight_layout(w_pad=2)
    for axes, points in drawn:
        label_points(axes, points)
    return as_svg(figure)


def label_points(axes, points: list[tuple[float, float, Variant]]) -> None:
    """The name beside each point; names of points that lie close together in one line, so that none covers another."""
    near_x, near_y = 40, 14  # pixels
    groups: list[tuple[tuple[float, float], list[str], tuple[float, float]]] = []
    for x, y, v in sorted(points, key=lambda p: p[0]):
        at = axes.transData.transform((x, y))
        for place, names, _ in groups:
            if abs(place[0] - at[0]) < near_x and abs(place[1] - at[1]) < near_y:
                names.append(v.short)
                break
        else:
            groups.append((tuple(at), [v.short], (x, y)))
    middle = axes.transAxes.transform((0.55, 0))[0]
    for place, names, at in groups:
        on_left = place[0] > middle  # where there is room
        text = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        axes.annotate(
            text,
            at,
            xytext=(-7 if on_left else 7, 4),
            textcoords="offset points",
            ha="right" if on_left else "left",
            fontsize=8,
            color=INK,
            zorder=6,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )


def stacked(r: Results, values: dict[int, list[float]], names: list[str], label: str) -> str | None:
    """A bar a variant, parts that are nothing anywhere left out."""
    shown = [v for v in r.variants if v.id in values]
    parts = [i for i in range(len(names)) if any(values[v.id][i] > 0 for v in shown)]
    if not shown or not parts:
        return None
    figure, axes = plt.subplots(figsize=(5.2, 0.9 + 0.27 * len(shown)))
    left = np.zeros(len(shown))
    for i, colour in zip(parts, PALETTE):
        widths = np.array([values[v.id][i] for v in shown])
        axes.barh(range(len(shown)), widths, left=left, height=0.66, color=colour, label=names[i])
        left += widths
    axes.set_yticks(range(len(shown)), [v.short for v in shown], color=INK)
    axes.set_ylim(len(shown) - 0.45, -0.55)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if label == "ms":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
    else:
        axes.set_xlabel(label)
    axes.legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0), handlelength=0.9,
                columnspacing=1.1, borderpad=0)
    return as_svg(figure)


def step_plots(r: Results, b: Breakdown) -> list[tuple[str, str | None]]:
    batches = {v: list(both) for v, both in b.batches.items()}
    return [
        ("Time of a step by phase, mean", stacked(r, b.phases, [name for _, name in PHASES], "ms")),
        ("Time of a step inside plugins, mean", stacked(r, b.calls, [name for _, name in CALLS], "ms")),
        ("Batch: tokens of a step, mean", stacked(r, batches, ["prefill", "decode"], "tokens")),
    ]


def class_plot(r: Results, groups: dict[str, dict[int, tuple]], of: dict[int, str]) -> str:
    """TTFT by class: a panel a class, a bar to p50 and a line to p99 a variant."""
    shown = [v for v in r.variants if v.id in of]
    width = 1.6 + 2.3 * max(3, len(groups))  # the page scales it to its own: letters of two classes stay as small
    figure, all_axes = plt.subplots(
        1, len(groups), figsize=(width, 0.7 + 0.27 * len(shown)), sharey=True, sharex=True, squeeze=False
    )
    positive = [x[1] for by in groups.values() for x in by.values() if x[1] > 0]
    worst = max((x[2] for by in groups.values() for x in by.values()), default=1)
    log = bool(positive) and worst / min(positive) > 50
    for axes, (group, by) in zip(all_axes[0], groups.items()):
        for y, v in enumerate(shown):
            if v.id not in by:
                continue
            _, p50, p99, _, _ = by[v.id]
            axes.plot([p50, p99], [y, y], color=of[v.id], linewidth=1.6, zorder=3)
            axes.plot(p50, y, "o", color=of[v.id], markersize=5.5, zorder=4)
            axes.plot(p99, y, "|", color=of[v.id], markersize=9, markeredgewidth=1.8, zorder=4)
        counts = sum(x[0] for x in by.values())
        axes.set_title(f"{group}", loc="left", fontsize=9, fontweight="bold", pad=4)
        axes.annotate(f"{counts:,} requests", (1, 1), xycoords="axes fraction", xytext=(0, 5), textcoords="offset points",
                      ha="right", fontsize=7.5, color=MUTED)
        axes.set_yticks(range(len(shown)), [v.short for v in shown], color=INK)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        if log:
            axes.set_xscale("log")
        else:
            axes.set_xlim(0, worst * 1.08)
            axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
    figure.tight_layout(w_pad=1.5)
    return as_svg(figure)


def forest_by_variant(r: Results, names: list[str]) -> str | None:
    """Of many variants: a panel a primary metric, a row a variant; green and red are verdicts."""
    base = r.baseline
    others = [v for v in r.variants if v is not base]
    panels = [
        n
        for n in names
        if base.metrics.get(n)
        and base.metrics[n].is_on_scale
        and any(v.metrics[n].drawn_difference is not None for v in others)
    ]
    if not others or not panels:
        return None
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(3.3 * columns, rows * (0.75 + 0.21 * len(others))), sharey=True, squeeze=False
    )
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, n in zip(grid.flat, panels):
        scale, unit = base.metrics[n].scale
        ends = [abs(v.metrics[n].difference * scale) for v in others if v.metrics[n].drawn_difference is not None]
        limit = min(200.0, max(10.0, 1.6 * float(np.quantile(ends, 0.8))))
        for y, v in enumerate(others):
            m = v.metrics[n]
            if m.drawn_difference is None:
                continue
            colour = VERDICTS.get(m.verdict, "#9aa5b1")
            if m.low is not None:
                axes.plot(np.clip([m.low * scale, m.high * scale], -limit, limit), [y, y], color=colour, linewidth=1.8)
            x = m.difference * scale
            if abs(x) > limit:
                axes.annotate(f"{x:+,.0f}{unit}", (math.copysign(limit, x), y), ha="right" if x > 0 else "left", va="center",
                              fontsize=7.5, color=colour, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
            else:
                axes.plot(x, y, "o", color=colour, markersize=5, markerfacecolor=colour if m.verdict in VERDICTS else "white")
        axes.axvline(0, color=BASELINE, linewidth=1.1)
        axes.set_xlim(-min(limit, 105), limit)
        axes.set_yticks(range(len(others)), [v.short for v in others], color=INK, fontsize=8)
        axes.set_ylim(len(others) - 0.4, -0.6)
        axes.grid(axis="y", color=GHOST, linewidth=0.4)
        better = {"higher": "more is better", "lower": "less is better"}.get(base.metrics[n].better, "")
        axes.set_title(base.metrics[n].label, loc="left", fontsize=9.5, fontweight="bold")
        axes.annotate(better, (1, 1), xycoords="axes fraction", xytext=(0, 5), textcoords="offset points", ha="right",
                      fontsize=7.5, color=MUTED)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _, u=unit: f"{x:+g}{u}".replace("-", "−") if x else "0"))
    figure.tight_layout(w_pad=1.2, h_pad=1.2)
    return as_svg(figure)
