"""Plots a trace from the JSON of `patchbay workload describe --json`: workload.py DATA --out FILE.svg

Rate over time, distributions of the lengths, shares of the classes. `patchbay workload describe --plot` calls it.
"""

import argparse
import json
import sys
from pathlib import Path

from missing import missing


def draw(data: dict, out: Path) -> None:
    import numpy as np
    from matplotlib.ticker import FuncFormatter, LogFormatter, PercentFormatter

    from plots import BASELINE, INK, MUTED, PALETTE, plt

    panels = [name for name in ("rates", "lengths", "classes") if data[name]]
    figure, axes = plt.subplots(len(panels), 1, figsize=(7.4, 2.6 * len(panels)), constrained_layout=True, squeeze=False)
    for panel, ax in zip(panels, axes[:, 0]):
        if panel == "rates":
            edges = np.linspace(0, data["seconds"], len(data["rates"]) + 1)
            ax.stairs(data["rates"], edges, fill=True, color=PALETTE[0], alpha=0.35)
            ax.stairs(data["rates"], edges, color=PALETTE[0], linewidth=1)
            ax.axhline(data["mean_rate"], color=BASELINE, linewidth=1, linestyle=(0, (4, 3)))
            ax.annotate(
                f"mean {data['mean_rate']:.3g}", (data["seconds"], data["mean_rate"]), xytext=(4, 0),
                textcoords="offset points", color=MUTED, fontsize=8, va="center",
            )
            ax.set_xlim(0, data["seconds"])
            ax.set_ylim(bottom=0)
            ax.set_xlabel("time, s")
            ax.set_ylabel("requests per second")
        elif panel == "lengths":
            for series, colour in zip(data["lengths"], PALETTE):
                shares = np.linspace(0, 1, len(series["quantiles"]))
                ax.plot(np.maximum(series["quantiles"], 1), shares, color=colour, label=series["name"], linewidth=1.6)
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
            ax.xaxis.set_minor_formatter(LogFormatter())  # the default one writes formulas
            ax.yaxis.set_major_formatter(PercentFormatter(1))
            ax.set_xlabel(f"{data['lengths'][0]['unit']} at most")
            ax.set_ylabel("requests")
            ax.legend(frameon=False, loc="lower right")
        else:
            shown = data["classes"][:12]
            ax.barh(range(len(shown)), [c["requests"] for c in shown], color=PALETTE[0], height=0.6)
            ax.set_yticks(range(len(shown)), [c["name"][:32] for c in shown], color=INK)
            ax.set_ylim(len(shown) - 0.5, -0.5)
            ax.grid(axis="y", visible=False)
            more = len(data["classes"]) - len(shown)
            ax.set_xlabel("requests" + (f"; and {more} more classes, not shown" if more else ""))
    title = f"{data['name']}: {data['requests']:,} requests"
    if data["known_tokens"]:
        title += f", {100 * data['shared_tokens'] / data['known_tokens']:.3g} % of prompt tokens shared"
    figure.suptitle(title, color=INK, fontsize=10.5, x=0.01, ha="left", fontweight="bold")
    metadata = {"Date": None, "Creator": None} if out.suffix == ".svg" else {}
    figure.savefig(out, metadata=metadata, dpi=150)


def main() -> int:
    parser = argparse.ArgumentParser(prog="workload", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.out.suffix not in (".svg", ".png", ".pdf"):
        print(f"workload: {args.out} ends in '{args.out.suffix}', expected .svg, .png or .pdf", file=sys.stderr)
        return 1
    try:
        draw(json.loads(args.data.read_text()), args.out)
    except ImportError as error:
        print(f"workload: {missing(error)}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"workload: cannot make {args.out}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
