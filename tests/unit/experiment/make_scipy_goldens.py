#!/usr/bin/env python3
"""Writes scipy_goldens.hpp: what SciPy says of the same numbers. Needs scipy (made with 1.17.1) and numpy.

    python3 tests/unit/experiment/make_scipy_goldens.py
"""

import math
from pathlib import Path

import numpy as np
from scipy import optimize, stats

ALPHAS = (0.05, 0.05 / 6, 0.05 / 90)
POWER = 0.9


def numbers(values) -> str:
    return "{" + ", ".join(repr(float(v)) for v in values) + "}"


def samples():
    draw = np.random.default_rng(20)
    for count in (2, 5, 7, 10, 20):
        yield draw.normal(0.05, 0.03, count)
        yield draw.lognormal(0, 1, count) - 1
        yield 1e6 + draw.normal(0, 1, count)


def means() -> list[str]:
    rows = []
    for values in samples():
        for alpha in ALPHAS:
            test = stats.ttest_1samp(values, 0)
            low, high = test.confidence_interval(1 - alpha)
            rows.append(f"{{{numbers(values)}, {alpha!r}, {float(low)!r}, {float(high)!r}, {float(test.pvalue)!r}}},")
    return rows


def detectable(freedom: float, alpha: float) -> float:
    bound = stats.t.isf(alpha / 2, freedom)

    def missing(mean: float) -> float:
        other_side = stats.nct.cdf(-bound, freedom, mean)  # NaN where it is too small to be computed
        return stats.nct.sf(bound, freedom, mean) + (0 if math.isnan(other_side) else other_side) - POWER

    high = bound + 1
    while missing(high) < 0:
        high *= 1.5
    return optimize.brentq(missing, 0, high, xtol=1e-14, rtol=1e-14)


def detectables() -> list[str]:
    return [
        f"{{{freedom}, {alpha!r}, {detectable(freedom, alpha)!r}}},"
        for freedom in (1, 4, 6, 9, 19, 99)
        for alpha in ALPHAS
    ]


def shares() -> list[str]:
    rows = []
    for successes, trials in ((0, 24), (1, 24), (3, 24), (24, 24), (200, 4000), (0, 1)):
        low, high = stats.binomtest(successes, trials).proportion_ci(0.95, "exact")
        rows.append(f"{{{successes}, {trials}, {float(low)!r}, {float(high)!r}}},")
    return rows


def quantiles() -> list[str]:
    values = np.random.default_rng(21).lognormal(0, 1, 37)
    return [f"{{{numbers(values)}, {q}, {float(np.quantile(values, q))!r}}}," for q in (0, 0.5, 0.9, 0.99, 1)]


def table(kind: str, fields: str, name: str, rows: list[str]) -> str:
    body = "\n    ".join(rows)
    return f"struct {kind} {{\n    {fields}\n}};\nconst std::vector<{kind}> {name} = {{\n    {body}\n}};\n"


def wrapped(line: str) -> str:
    """At spaces, to 120 columns."""
    out = ""
    while len(line) > 120:
        at = line.rindex(" ", 0, 120)
        out += line[:at] + "\n"
        line = "        " + line[at + 1 :]
    return out + line


def main() -> None:
    text = (
        "// What SciPy and NumPy say of these numbers. Written by make_scipy_goldens.py.\n#pragma once\n"
        "#include <cstdint>\n#include <vector>\n\nnamespace patchbay::experiment::scipy {\n\n"
        + table("Mean", "std::vector<double> values;\n    double alpha, low, high, p;", "kMeans", means())
        + "\n"
        + table("Detectable", "double freedom, alpha, errors;", "kDetectable", detectables())
        + "\n"
        + table("Share", "uint64_t successes, trials;\n    double low, high;", "kShares", shares())
        + "\n"
        + table("Quantile", "std::vector<double> values;\n    double q, value;", "kQuantiles", quantiles())
        + "\n}  // namespace patchbay::experiment::scipy\n"
    )
    text = "\n".join(wrapped(line) for line in text.split("\n"))
    (Path(__file__).parent / "scipy_goldens.hpp").write_text(text)


if __name__ == "__main__":
    main()
