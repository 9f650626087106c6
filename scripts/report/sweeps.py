"""Curves over a factor that is a number, and over the rates of searches for the capacity."""

import sqlite3
from dataclasses import dataclass, field

from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from plots import INK, MUTED, PALETTE, as_svg, duration, plt
from results import Results, Variant


@dataclass
class Sweep:
    path: str = ""  # of the factor
    lines: dict[str, list[tuple[float, int]]] = field(default_factory=dict)  # the other factors → value, variant


@dataclass
class Search:  # runs of a variant at several rates
    rates: list[float]
    shares: list[float]  # of the requests that kept the objective, in %
    repeats: list[int]


def number_of(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def sweep_of(factors: dict[int, dict[str, str]]) -> Sweep:
    """The numeric factor with most values, keys of the workload first; empty: no factor has three of them."""
    paths = sorted({path for of_variant in factors.values() for path in of_variant})

    def values(path: str) -> set[float]:
        found = {number_of(f[path]) for f in factors.values() if path in f}
        return set() if None in found else found

    best = max(paths, key=lambda p: (p.startswith("workload."), len(values(p))), default="")
    if not best or len(values(best)) < 3:
        best = max(paths, key=lambda p: len(values(p)), default="")
    if not best or len(values(best)) < 3:
        return Sweep()
    out = Sweep(best)
    for variant, of_variant in factors.items():
        if best not in of_variant:
            continue
        rest = " ".join(f"{path.removesuffix('.plugin').rpartition('.')[2]}={value}" for path, value in sorted(of_variant.items()) if path != best)
        out.lines.setdefault(rest, []).append((number_of(of_variant[best]), variant))
    for line in out.lines.values():
        line.sort()
    out.lines = {name: line for name, line in out.lines.items() if len(line) > 1}
    shared = set.intersection(*(set(name.split(" ")) for name in out.lines)) if len(out.lines) > 1 else set()
    out.lines = {" ".join(w for w in name.split(" ") if w not in shared): line for name, line in out.lines.items()}
    return out if out.lines else Sweep()


def read_sweep(db: sqlite3.Connection) -> Sweep:
    factors: dict[int, dict[str, str]] = {}
    for variant, path, value in db.execute("SELECT variant_id, path, value FROM factor"):
        factors.setdefault(variant, {})[path] = value
    return sweep_of(factors)


def read_searches(db: sqlite3.Connection) -> dict[int, Search]:
    out: dict[int, Search] = {}
    for variant, repeat, rate, share in db.execute(
        "SELECT variant_id, repeat, rate, objective_share FROM capacity_run WHERE valid ORDER BY rate"
    ):
        search = out.setdefault(variant, Search([], [], []))
        search.rates.append(rate)
        search.shares.append(100 * share)
        search.repeats.append(repeat)
    return out


def sweep_plot(r: Results, s: Sweep) -> str | None:
    """Latency over throughput, a line for each combination of the other factors; points are values of the factor."""
    if not s.lines:
        return None
    by_id = {v.id: v for v in r.variants}
    figure, all_axes = plt.subplots(1, 2, figsize=(9.6, 3.8))
    panels = []
    for axes, name, label in zip(all_axes, ("ttft_p99", "tpot_p99"), ("TTFT p99", "TPOT p99")):
        drawn = []
        for (line, points), colour in zip(s.lines.items(), PALETTE * 4):
            shown = [
                (by_id[v].metrics["output_throughput"].value, by_id[v].metrics[name].value, value)
                for value, v in points
                if by_id[v].metrics and by_id[v].metrics["output_throughput"].value and by_id[v].metrics[name].value
            ]
            if len(shown) < 2:
                continue
            x, y, values = zip(*shown)
            drawn += y
            axes.plot(x, y, "o-", color=colour, markersize=5, linewidth=1.6, label=line or None)
            for px, py, value in shown if colour == PALETTE[0] else []:  # of one line, as those of others lie near
                axes.annotate(f"{value:g}", (px, py), xytext=(5, 5), textcoords="offset points", fontsize=7.5, color=MUTED)
        if not drawn:  # as TPOT of outputs of one token
            axes.set_visible(False)
            continue
        panels.append(axes)
        if max(drawn) / min(drawn) > 20:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel("output tokens per second")
        axes.set_title(label, loc="left", fontsize=9.5, fontweight="bold")
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 10 else f"{v:g}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
        axes.margins(x=0.08)
    if not panels:
        plt.close(figure)
        return None
    if any(s.lines):
        panels[0].legend(frameon=False, fontsize=8)
    figure.tight_layout(w_pad=2)
    return as_svg(figure)


def capacity_plot(r: Results, searches: dict[int, Search], of: dict[int, str], wanted: float | None) -> str | None:
    """The share of requests that kept the objective over the rate, a point a run; a vertical line: the capacity. Without
    means over rates: which repeats have a run at a rate depends on how their searches went."""
    shown: list[Variant] = [v for v in r.variants if v.id in searches and v.id in of]
    if not shown:
        return None
    figure, axes = plt.subplots(figsize=(9.6, 3.6))
    for v in shown:
        search = searches[v.id]
        capacity = v.metrics.get("capacity")
        found = capacity.value if capacity and capacity.value else None
        label = f"{v.short}: {'≥ ' if capacity.is_bound else ''}{found:.3g} req/s" if found else v.short
        axes.plot(search.rates, search.shares, "o", color=of[v.id], markersize=4, alpha=0.6, zorder=3, label=label)
        if found:
            axes.axvline(found, color=of[v.id], linewidth=1.6, linestyle=(0, (4, 3)), zorder=2)
    if wanted:
        axes.axhline(100 * wanted, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda x, _: ""))
    axes.set_xlabel("requests per second")
    axes.set_ylabel("% that kept the objective")
    axes.set_ylim(-2, 104)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    return as_svg(figure)
