"""Sections about what ran: configurations, plugins, swaps, the machine and the runs."""

from html import escape

from markup import folded, swatch, table
from results import Results, Variant


def fact(key: str, value) -> str:
    if key.endswith("_bytes") and isinstance(value, (int, float)):
        for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value >= size:
                return f"{value / size:.1f} {unit}"
    return f"{value:,}" if isinstance(value, int) else str(value)


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
    shown = table(head, rows) if short else folded(f"All {len(rows)} swaps", table(head, rows))
    return "<h3>Swaps during a run</h3>" + shown


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
