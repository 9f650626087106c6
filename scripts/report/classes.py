"""The section of classes: latencies by tenant, by class and by length of the prompt."""

from html import escape

import breakdown
import plots
from markup import folded, picture, swatch, table, with_unit
from metric_tables import delta
from results import Results


def class_tables(r: Results, of: dict[int, str]) -> str:
    """As the terminal has them: what `by` asked for, with intervals."""
    out = ""
    base = r.baseline
    ordered = [base] + [v for v in r.variants if v is not base]
    for kind, classes in r.classes.items():
        present = {name for by in classes.values() for _, metrics in by.values() for name in metrics}
        names = [n for n in r.primary if n in present]
        if not names:
            continue
        head = "".join(f"<th>{escape(base.metrics[n].label)}</th>" for n in names)
        rows = ""
        for name, by in classes.items():
            count = by[base.id][0] if base.id in by else 0
            rows += f'<tr class=group><th colspan="{len(names) + 1}">{escape(name)} · {count:,} requests of {escape(base.short)}</th></tr>'
            for v in ordered:
                if v.id not in by:
                    continue
                cells = ""
                for n in names:
                    metric, from_base = by[v.id][1].get(n), by.get(base.id, (0, {}))[1].get(n)
                    if not metric:
                        cells += "<td>–</td>"
                        continue
                    change = f"<div class=delta>{delta(metric, from_base)}</div>" if v is not base and from_base else ""
                    cells += f"<td><div class=value>{with_unit(metric.value, metric.unit)}</div>{change}</td>"
                rows += f"<tr><th scope=row>{swatch(of.get(v.id))}{escape(v.short)}</th>{cells}</tr>"
        body = (
            "<div class=scroll><table class='results classes'><thead><tr><th>class</th>"
            f"{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
        title = f"By {kind.replace('_', ' ')}"
        out += f"<h3>{title}</h3>{body}" if len(classes) * len(ordered) <= 16 else folded(title, body)
    if not out:
        return ""
    note = "Means over repeats with 95 % intervals of the differences, without verdicts: hints for the next experiment."
    return f"<p class=muted>{note}</p>{out}"


def class_section(r: Results, of: dict[int, str]) -> str:
    out = ""
    for kind, every in r.breakdown.classes.items():
        groups = dict(list(every.items())[: breakdown.CLASS_LIMIT])
        more = f"; and {len(every) - len(groups)} more, not shown" if len(every) > len(groups) else ""
        head = ["", *(escape(group) for group in groups)]
        rows = [
            [f"{swatch(of.get(v.id))}{escape(v.short)}"]
            + [
                " / ".join(plots.duration(x) if x == x else "–" for x in groups[group][v.id][1:])
                if v.id in groups[group]
                else "–"
                for group in groups
            ]
            for v in r.variants
        ]
        out += picture(
            breakdown.class_plot(r, groups, of),
            f"TTFT by {kind}",
            f"TTFT by {kind}: from p50 (dot) to p99 (bar){more}",
            "wide",
        )
        out += folded(f"By {kind}: TTFT p50 / TTFT p99 / TPOT p50 / E2E p50{more}", table(head, rows))
    tables = class_tables(r, of)
    if not out and not tables:
        return ""
    note = "Requests of all runs that count, pooled; without intervals or verdicts: a hint, no evidence."
    return f"<section><h2>By class</h2>{tables}<p class=muted>{note}</p>{out}</section>"
