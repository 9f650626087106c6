"""What a results database holds, as plain data for plots and page. docs/experiments.md describes the tables."""

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SCHEMAS = range(5, 7)  # user_version of the databases that this reads
BOUNDS = {"at least": "≥", "at most": "≤"}  # verdicts of differences that are bounds
LATENCIES = ("ttft", "tpot", "itl", "e2e")
SERIES = ("queue", "kv", "batch")
BINS = 300  # intervals of a time series


class BadDatabase(Exception):
    pass


@dataclass
class Metric:
    name: str
    label: str
    unit: str
    better: str  # higher, lower, neither
    value: float | None
    difference: float | None  # from the baseline, in `unit`
    low: float | None  # 95 % interval of the difference
    high: float | None
    verdict: str
    primary_rank: int | None  # from 1; None: exploratory, without a verdict
    corrected: float | None  # p, corrected for the number of verdicts
    detectable: float | None  # the smallest difference that 9 of 10 such experiments would have shown
    is_bound: bool = False  # the value is a lower bound

    @property
    def scale(self) -> tuple[float, str]:
        """Of the baseline's: what a difference from it is multiplied by to be shown, and the unit."""
        if self.unit == "%":
            return 1.0, " pp"
        if self.value:
            return 100 / abs(self.value), " %"
        return 1.0, f" {self.unit}".replace(" per run", "")

    @property
    def drawn_difference(self) -> float | None:
        """None where only a bound of it is known."""
        return None if self.verdict in BOUNDS else self.difference

    @property
    def is_on_scale(self) -> bool:
        """Whether differences from it can be drawn beside those of other metrics."""
        return self.scale[1] in (" %", " pp")


@dataclass
class Series:
    """Time-weighted means over the intervals between `edges` (s)."""

    edges: np.ndarray
    values: dict[str, np.ndarray]
    arrivals: np.ndarray  # s


@dataclass
class Variant:
    id: int
    name: str
    is_baseline: bool
    patch_yaml: str
    effective_yaml: str
    facts: dict
    plugins: list[dict]
    differences: list[tuple]  # path, value of the baseline, own value, declared
    metrics: dict[str, Metric] = field(default_factory=dict)
    comparison: tuple | None = None  # pairs, repeats, those of them that count, share of equal outputs
    latencies: dict[str, np.ndarray] = field(default_factory=dict)  # ms, over the runs that count
    series: Series | None = None
    short: str = ""  # the name without what all have; set when all are read
    markers: list[tuple[float, str]] = field(default_factory=list)  # of the series' run: s, what happened


@dataclass
class Results:
    info: dict
    notices: list[str]
    variants: list[Variant]
    runs: list[dict]
    swaps: list[dict]  # components exchanged in mid-run
    series_repeat: int | None  # that of the time series
    breakdown: object = None  # breakdown.Breakdown
    gantt: object = None  # gantt.Gantt
    sweep: object = None  # sweeps.Sweep
    searches: dict = field(default_factory=dict)  # variant → sweeps.Search
    quality: list[dict] = field(default_factory=list)  # rows of the table, by variant
    wanted_share: float | None = None  # of requests that keep the objective, where capacities were searched
    # By class, as the table has them: kind → class → variant → requests and metrics.
    classes: dict[str, dict[str, dict[int, tuple[int, dict[str, Metric]]]]] = field(default_factory=dict)

    @property
    def primary(self) -> list[str]:
        ranked = [m for m in self.baseline.metrics.values() if m.primary_rank]
        return [m.name for m in sorted(ranked, key=lambda m: m.primary_rank)]

    @property
    def baseline(self) -> Variant:
        return next((v for v in self.variants if v.is_baseline), self.variants[0])


def open_database(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise BadDatabase(f"{path} is not there")
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise BadDatabase(f"{path} is not a results database: {error}") from error
    if version not in SCHEMAS:
        raise BadDatabase(
            f"{path} has tables of version {version}, expected {SCHEMAS[0]} to {SCHEMAS[-1]}: another version of patchbay made it"
        )
    return db


def step_means(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Means between edges of the step function that takes values[i] at times[i] and is 0 before."""
    times = np.concatenate(([0.0], times, [max(edges[-1], times[-1] if len(times) else 0.0)]))
    values = np.concatenate(([0.0], values))
    integral = np.concatenate(([0.0], np.cumsum(values * np.diff(times))))
    return np.diff(np.interp(edges, times, integral)) / np.diff(edges)


def series_of(db: sqlite3.Connection, run: int, seconds: float) -> Series | None:
    rows = db.execute(
        "SELECT start_ns, end_ns, waiting_requests, scheduled_seqs, used_pages, total_pages FROM step"
        " WHERE run_id = ? ORDER BY step",
        (run,),
    ).fetchall()
    if not rows or seconds <= 0:
        return None
    start, end, waiting, batch, used, total = np.array(rows, dtype=float).T
    edges = np.linspace(0, seconds, BINS + 1)
    arrivals = np.array([r[0] for r in db.execute("SELECT arrival_ns FROM request WHERE run_id = ?", (run,))]) * 1e-9
    # What is true after a step holds until the next one ends; a batch only while its step runs.
    batch_times = np.column_stack((start, end)).ravel() * 1e-9
    batch_values = np.column_stack((batch, np.zeros_like(batch))).ravel()
    return Series(
        edges,
        {
            "queue": step_means(end * 1e-9, waiting, edges),
            "kv": step_means(end * 1e-9, 100 * used / np.maximum(total, 1), edges),
            "batch": step_means(batch_times, batch_values, edges),
        },
        arrivals,
    )


def latencies_of(db: sqlite3.Connection, runs: list[int]) -> dict[str, np.ndarray]:
    found = {name: [] for name in LATENCIES}
    for run in runs:
        for arrival, finish, token_ns in db.execute(
            "SELECT arrival_ns, finish_ns, token_ns FROM request"
            " WHERE run_id = ? AND counted AND output_tokens > 0 AND finish_reason IN ('stop', 'length', 'repetition')",
            (run,),
        ):
            times = np.frombuffer(token_ns, dtype="<u8").astype(float) * 1e-6
            found["ttft"].append(times[0] - arrival * 1e-6)
            found["e2e"].append(finish * 1e-6 - arrival * 1e-6)
            if len(times) > 1:
                found["tpot"].append((times[-1] - times[0]) / (len(times) - 1))
                found["itl"].extend(np.diff(times))
    return {name: np.sort(np.array(values, dtype=float)) for name, values in found.items()}


def counted_repeats(runs: list[dict]) -> set[int]:
    """The repeats that all variants with valid runs have one of, as in the table; where there is none, all with one."""
    by_repeat: dict[int, set] = {}
    for run in runs:
        if run["valid"]:
            by_repeat.setdefault(run["repeat"], set()).add(run["variant_id"])
    present = set().union(*by_repeat.values())
    whole = {repeat for repeat, have in by_repeat.items() if have == present}
    return whole or set(by_repeat)


def short_names(names: list[str]) -> list[str]:
    """Of combinations of factors only the values that differ; the names themselves where they are no such."""
    words = [name.split(" ") for name in names]
    keys = [word.partition("=")[0] for word in words[0]]
    alike = all(
        len(w) == len(keys) and all("=" in word and word.partition("=")[0] == key for word, key in zip(w, keys))
        for w in words
    )
    if len(names) < 2 or not alike:
        return names
    differing = [i for i in range(len(keys)) if len({w[i] for w in words}) > 1]
    short = [" ".join(w[i].partition("=")[2] for i in differing) for w in words]
    return short if len(set(short)) == len(set(names)) else names


def markers_of(db: sqlite3.Connection, run: int) -> list[tuple[float, str]]:
    """Swaps that took place, and steps in which a plugin broke its contract."""
    found = []
    for at, kind, to in db.execute(
        "SELECT time_ns, kind, to_name FROM swap WHERE run_id = ? AND time_ns IS NOT NULL", (run,)
    ):
        found.append((at * 1e-9, f"{kind} → {to}"))
    for at, faults in db.execute(
        "SELECT end_ns, sampler_faults + plan_faults + proposer_faults + kv_policy_faults AS faults FROM step"
        " WHERE run_id = ? AND faults > 0 ORDER BY step LIMIT 20",
        (run,),
    ):
        found.append((at * 1e-9, "fault"))
    return found


def swaps_of(db: sqlite3.Connection) -> list[dict]:
    found = db.execute("SELECT swap.* FROM swap JOIN run ON run.id = run_id ORDER BY run_id, number")
    return [dict(row) for row in found]


def classes_of(db: sqlite3.Connection) -> dict:
    found: dict = {}
    for row in db.execute(
        "SELECT kind, class, variant_id, requests, name, label, unit, better, value, difference, low, high FROM by_class"
        " ORDER BY class_position, variant_id, position"
    ):
        kind, name, variant, requests, *rest = row
        metric = Metric(*rest, "exploratory", None, None, None)
        found.setdefault(kind, {}).setdefault(name, {}).setdefault(variant, (requests, {}))[1][metric.name] = metric
    return found


def read(path: Path) -> Results:
    with open_database(path) as db:
        info = db.execute("SELECT * FROM experiment").fetchone()
        if info is None:
            raise BadDatabase(f"{path} holds no experiment: it ended before the first run")
        variants = []
        for row in db.execute("SELECT * FROM variant ORDER BY id"):
            differences = [
                tuple(d)
                for d in db.execute(
                    "SELECT path, baseline_value, value, declared FROM difference WHERE variant_id = ? ORDER BY path",
                    (row["id"],),
                )
            ]
            variants.append(
                Variant(
                    row["id"],
                    row["name"],
                    bool(row["is_baseline"]),
                    row["patch_yaml"],
                    row["effective_yaml"],
                    json.loads(row["facts_json"]),
                    json.loads(row["plugins_json"]),
                    differences,
                )
            )
        runs = [dict(row) for row in db.execute("SELECT * FROM run ORDER BY position")]
        counted = counted_repeats(runs)
        repeat = min(counted, default=None)
        for variant in variants:
            for row in db.execute(
                "SELECT name, label, unit, better, value, difference, low, high, verdict, primary_rank, p_corrected,"
                " detectable FROM metric WHERE variant_id = ? ORDER BY position",
                (variant.id,),
            ):
                variant.metrics[row["name"]] = Metric(*row)
            if "bound" in [column["name"] for column in db.execute("PRAGMA table_info(metric)")]:  # earlier ones have none
                for (name,) in db.execute(
                    "SELECT name FROM metric WHERE variant_id = ? AND bound IS NOT NULL", (variant.id,)
                ):
                    variant.metrics[name].is_bound = True
            found = db.execute(
                "SELECT pairs, repeats, independent, same_output FROM comparison WHERE variant_id = ?", (variant.id,)
            ).fetchone()
            variant.comparison = tuple(found) if found else None
            own = [r for r in runs if r["variant_id"] == variant.id and r["valid"] and r["repeat"] in counted]
            variant.latencies = latencies_of(db, [run["id"] for run in own])
            shown = [run for run in own if run["repeat"] == repeat]
            variant.series = series_of(db, shown[0]["id"], shown[0]["duration_ns"] * 1e-9) if shown else None
            variant.markers = markers_of(db, shown[0]["id"]) if shown else []
        for variant, short in zip(variants, short_names([v.name for v in variants])):
            variant.short = short
        notices = [row[0] for row in db.execute("SELECT text FROM notice")]
        import breakdown  # which needs this module

        inside = breakdown.read(db, variants, [run for run in runs if run["valid"] and run["repeat"] in counted])
        import gantt  # likewise
        import sweeps

        first = {r["variant_id"]: r["id"] for r in runs if r["valid"] and r["repeat"] == repeat and r["repeat"] in counted}
        return Results(
            dict(info),
            notices,
            variants,
            runs,
            swaps_of(db),
            repeat,
            inside,
            gantt.read(db, first),
            sweeps.read_sweep(db),
            sweeps.read_searches(db),
            [dict(row) for row in db.execute("SELECT * FROM quality ORDER BY variant_id")],
            dict(info).get("capacity_share"),  # which version 5 does not have
            classes_of(db),
        )
