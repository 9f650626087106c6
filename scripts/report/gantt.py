"""What some requests went through: waiting, the prompt, the output. The same requests for every variant."""

import sqlite3
from dataclasses import dataclass, field

import numpy as np
from matplotlib.patches import Patch

from plots import GHOST, INK, MUTED, as_svg, plt
from results import Results

SLOWEST, SPREAD = 8, 16  # requests that took longest in any variant; others, evenly by arrival
PANELS = 6
STAGES = [("waiting", "#c9ced6"), ("prompt", "#e69f00"), ("output", "#0072b2")]


@dataclass
class Gantt:
    numbers: list[int] = field(default_factory=list)  # of the requests, by arrival
    slow: set[int] = field(default_factory=set)
    # by variant and number: arrival, first step, first token, end in s, and how often it was preempted
    bars: dict[int, dict[int, tuple]] = field(default_factory=dict)


def read(db: sqlite3.Connection, runs: dict[int, int]) -> Gantt:
    """runs: of each variant the one that is shown."""
    out = Gantt()
    for variant, run in runs.items():
        rows = db.execute(
            "SELECT number, arrival_ns, first_scheduled_ns, first_token_ns, finish_ns, preemptions FROM request"
            " WHERE run_id = ? AND finish_ns IS NOT NULL AND first_token_ns IS NOT NULL ORDER BY number",
            (run,),
        )
        out.bars[variant] = {row[0]: (*(t * 1e-9 for t in row[1:5]), row[5]) for row in rows}
    common = set.intersection(*(set(bars) for bars in out.bars.values())) if out.bars else set()
    if not common:
        return Gantt()
    longest = {n: max(bars[n][3] - bars[n][0] for bars in out.bars.values()) for n in common}
    out.slow = set(sorted(common, key=lambda n: -longest[n])[:SLOWEST])
    first = next(iter(out.bars.values()))
    ordered = sorted(common, key=lambda n: (first[n][0], n))
    rest = [n for n in ordered if n not in out.slow]
    spread = {rest[i] for i in np.unique(np.linspace(0, len(rest) - 1, min(SPREAD, len(rest))).astype(int))} if rest else set()
    out.numbers = [n for n in ordered if n in out.slow or n in spread]
    out.bars = {v: {n: bars[n] for n in out.numbers} for v, bars in out.bars.items()}
    return out


def plot(r: Results, g: Gantt, of: dict[int, str]) -> str | None:
    shown = [v for v in [r.baseline] + [v for v in r.variants if v is not r.baseline] if v.id in of and v.id in g.bars][:PANELS]
    if not shown or not g.numbers:
        return None
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(5.2 * columns, 0.6 + rows * (0.5 + 0.115 * len(g.numbers))), sharex=True, sharey=True, squeeze=False
    )
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    for axes, v in zip(grid.flat, shown):
        for y, n in enumerate(g.numbers):
            arrival, started, token, end, preempted = g.bars[v.id][n]
            axes.plot([arrival, end], [y, y], color=GHOST, linewidth=0.5, zorder=1)
            for (_, colour), begin, until in zip(STAGES, (arrival, started, token), (started, token, end)):
                axes.barh(y, until - begin, left=begin, height=0.72, color=colour, zorder=3)
            if preempted:
                axes.plot(end, y, "x", color="#b42318", markersize=4, zorder=4)
        axes.set_title(v.short, loc="left", fontsize=9, color=of[v.id], fontweight="bold", pad=4)
        axes.set_yticks(range(len(g.numbers)), [f"{n}{' •' if n in g.slow else ''}" for n in g.numbers], fontsize=6.5, color=INK)
        axes.set_ylim(len(g.numbers) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_formatter(lambda s, _: f"{s:g} s")
    grid.flat[0].legend(
        handles=[Patch(color=colour, label=name) for name, colour in STAGES],
        frameon=False, fontsize=7.5, ncols=3, loc="lower right", bbox_to_anchor=(1, 1.0), borderpad=0, labelcolor=MUTED,
    )
    figure.tight_layout(w_pad=1.5, h_pad=1.0)
    return as_svg(figure)
