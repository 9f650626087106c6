"""The report against the database that it is made of: one that the program wrote, and changed copies of it."""

import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from matplotlib.axes import Axes

from stand import SCRIPT, SOURCE, Reader

import breakdown
import markup
import page
import plots
import results

QUESTION = 'Is <b>one</b> & "two" quicker?'
EXPERIMENT = f"""
question: '{QUESTION}'
include: {SOURCE}/configs/models/tiny.yaml
engine: {{max_num_seqs: 4}}
variants:
  one: {{scheduler: fcfs}}
  two: {{scheduler: sjf, engine.max_num_seqs: 2}}
  three: {{scheduler: static, at: {{request: 9, swap: {{scheduler: fcfs}}}}}}
repeats: 2
seed: 7
workload:
  requests: 16
  prompts: {{synthetic: {{tokens: {{uniform: {{min: 4, max: 60}}}}}}}}
  output_tokens: {{uniform: {{min: 1, max: 20}}}}
  arrivals: {{burst: {{size: 8, every_s: 0.05}}}}
slo: {{ttft_ms: 1000}}
"""


def run_report(database: Path, out: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-B", str(SCRIPT), str(database), "--out", str(out)], capture_output=True, text=True
    )


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="patchbay-report-"))
        (cls.folder / "e.yaml").write_text(EXPERIMENT)
        done = subprocess.run(
            [os.environ["PATCHBAY"], "run", "e.yaml", "--results", "r"],
            cwd=cls.folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PATCHBAY_PYTHON": sys.executable},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        cls.last_line = done.stdout.splitlines()[-1]
        cls.database = cls.folder / "r" / "results.sqlite"
        cls.html = (cls.folder / "r" / "report.html").read_text()
        cls.read = Reader(cls.html)
        cls.text = "".join(cls.read.texts)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def changed(self, *statements: str) -> Path:
        path = Path(tempfile.mkdtemp(dir=self.folder)) / "results.sqlite"
        shutil.copy(self.database, path)
        with sqlite3.connect(path) as db:
            for statement in statements:
                db.execute(statement)
        return path

    def one(self, sql: str):
        with sqlite3.connect(self.database) as db:
            return db.execute(sql).fetchone()[0]

    def test_run_makes_it_and_says_where(self):
        self.assertEqual(self.last_line, "report: r/report.html")

    def test_it_loads_nothing_from_anywhere(self):
        self.assertEqual(self.read.open, [])
        self.assertGreaterEqual(len(self.read.addresses), 8)
        for address in self.read.addresses:
            self.assertTrue(address.startswith("data:image/svg+xml;base64,"), address[:60])
        for banned in ("<script", "@import", "url(", "<link", "<iframe"):
            self.assertNotIn(banned, self.html)

    def test_it_says_what_was_asked_what_came_out_and_what_ran(self):
        for column in ("question", "conclusion", "command", "cpu", "os", "kernel", "build", "program_sha256"):
            self.assertIn(self.one(f"SELECT {column} FROM experiment"), self.text)
        self.assertIn("seed 7", self.text)
        for name in ("one", "two", "three"):
            self.assertIn(f"{name}: effective configuration", self.text)
        with sqlite3.connect(self.database) as db:
            for (plugins,) in db.execute("SELECT plugins_json FROM variant"):
                for sha in re.findall(r'"sha256":"([0-9a-f]{64})"', plugins):
                    self.assertIn(sha, self.text)
        self.assertIn("max_num_seqs: 2", self.text)

    def test_it_tells_what_was_swapped_in_each_run(self):
        task = "static → scheduler fcfs once 9 requests have arrived"
        rows = [row for row in self.read.rows if task in row]
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(row[1:4], ["three", task, "committed"])
            self.assertTrue(row[6].endswith(" µs"))

    def test_texts_of_the_experiment_are_no_html(self):
        self.assertNotIn("<b>one</b>", self.html)

    def test_dollars_in_a_name_are_no_formula(self):
        html = page.page(results.read(self.changed("UPDATE variant SET name = '$_$' WHERE id = 1")))
        self.assertIn("$_$: effective configuration", html)

    def test_latencies_are_those_of_the_tokens(self):
        data = results.read(self.database)
        for variant in data.variants:
            ttft, e2e, tpot, gaps = [], [], [], []
            with sqlite3.connect(self.database) as db:
                for arrival, finish, blob in db.execute(
                    "SELECT arrival_ns, finish_ns, token_ns FROM request JOIN run ON run.id = run_id"
                    " WHERE variant_id = ?",
                    (variant.id,),
                ):
                    times = [int.from_bytes(blob[i : i + 8], "little") for i in range(0, len(blob), 8)]
                    ttft.append((times[0] - arrival) / 1e6)
                    e2e.append((finish - arrival) / 1e6)
                    gaps += [(b - a) / 1e6 for a, b in zip(times, times[1:])]
                    if len(times) > 1:
                        tpot.append((times[-1] - times[0]) / 1e6 / (len(times) - 1))
            for name, values in (("ttft", ttft), ("tpot", tpot), ("itl", gaps), ("e2e", e2e)):
                self.assertTrue(np.allclose(variant.latencies[name], sorted(values), rtol=0, atol=1e-6), name)

    def test_values_are_means_over_repeats(self):
        """The program's own statistics, by another road."""
        data = results.read(self.database)
        for variant in data.variants:
            medians = []
            with sqlite3.connect(self.database) as db:
                for repeat in range(2):
                    rows = db.execute(
                        "SELECT finish_ns - arrival_ns FROM request JOIN run ON run.id = run_id"
                        " WHERE variant_id = ? AND repeat = ?",
                        (variant.id, repeat),
                    )
                    medians.append(statistics.median(ns / 1e6 for (ns,) in rows))
            self.assertAlmostEqual(
                variant.metrics["e2e_p50"].value, statistics.geometric_mean(medians), places=6, msg=variant.name
            )

    def test_verdicts_are_of_primary_metrics_only(self):
        data = results.read(self.database)
        self.assertEqual(
            data.primary, ["goodput_share", "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "e2e_p50"]
        )
        for name, metric in data.variants[1].metrics.items():
            self.assertEqual(metric.verdict == "too few repeats", name in data.primary, name)
        groups = [row[0] for row in self.read.rows if len(row) == 1]
        self.assertEqual(groups[0], "Primary: verdicts, corrected for their number")

    def test_beside_no_difference_stands_what_would_have_been_seen(self):
        base = self.one("SELECT value FROM metric WHERE variant_id = 0 AND name = 'ttft_p50'")
        path = self.changed(
            f"UPDATE metric SET verdict = 'no difference shown', detectable = {base * 0.0312}"
            " WHERE variant_id = 1 AND name = 'ttft_p50'"
        )
        rows = {row[0]: row[1:] for row in Reader(page.page(results.read(path))).rows if row}
        self.assertIn("≥ 3.12 %", rows["TTFT p50"][1])

    def test_bounds_are_shown_as_such_and_drawn_nowhere(self):
        path = self.changed(
            "UPDATE metric SET bound = 'at least', verdict = 'at least', low = NULL, high = NULL"
            " WHERE variant_id = 1 AND name = 'ttft_p50'"
        )
        data = results.read(path)
        rows = {row[0]: row[1:] for row in Reader(page.page(data)).rows if row}
        self.assertRegex(rows["TTFT p50"][1], r"^≥ [0-9].* ?≥[+−-]")
        self.assertIsNone(data.variants[1].metrics["ttft_p50"].drawn_difference)
        self.assertFalse(data.variants[0].metrics["ttft_p50"].is_bound)

    def test_a_share_cannot_differ_by_more_than_100_points(self):
        for size, expected in ((31, "≥ 31.0 pp"), (223, "noise")):
            path = self.changed(
                f"UPDATE metric SET verdict = 'no difference shown', difference = 1, detectable = {size}"
                " WHERE variant_id = 1 AND name = 'goodput_share'"
            )
            rows = {row[0]: row[1:] for row in Reader(page.page(results.read(path))).rows if row}
            self.assertIn(expected, rows["goodput share"][1])

    def test_the_table_has_the_values_the_differences_and_their_intervals(self):
        data = results.read(self.database)
        rows = {row[0]: row[1:] for row in self.read.rows if row}
        base, two = data.variants[0].metrics["e2e_mean"], data.variants[1].metrics["e2e_mean"]
        self.assertIn(markup.with_unit(base.value, "ms"), rows["E2E mean"][0])
        self.assertIn(markup.with_unit(two.value, "ms"), rows["E2E mean"][1])
        self.assertAlmostEqual(two.difference, two.value - base.value, places=9)
        for part in (two.difference, two.low, two.high):
            self.assertIn(markup.signed(100 * part / base.value), rows["E2E mean"][1])
        self.assertEqual(len(rows["E2E mean"]), 3)

    def test_values_have_readable_units(self):
        self.assertEqual(
            [markup.with_unit(v, "ms") for v in (0.0123, 0.84, 19, 475.2, 1082, 65000)],
            ["12.3 µs", "840 µs", "19.0 ms", "475 ms", "1.08 s", "65.0 s"],
        )
        self.assertEqual(
            [markup.with_unit(v, u) for v, u in ((1195.2, "tok/s"), (36.9, "%"), (0, "per run"), (None, "ms"))],
            ["1,195 tok/s", "36.9 %", "0", "–"],
        )
        self.assertEqual(
            [markup.signed(v) for v in (3.83, -0.049, 181.4, 0, -1234.5)], ["+3.8", "−0.05", "+181", "0", "−1,234"]
        )

    def test_only_repeats_that_every_variant_has_are_counted(self):
        whole = results.read(self.database)
        part = results.read(self.changed("UPDATE run SET valid = 0 WHERE repeat = 0 AND variant_id = 1"))
        for before, after in zip(whole.variants, part.variants):
            self.assertEqual(len(before.latencies["e2e"]), 2 * len(after.latencies["e2e"]), after.name)
        self.assertEqual(part.series_repeat, 1)

    def test_a_difference_beyond_the_plot_is_still_drawn(self):
        data = results.read(self.database)
        of = plots.colours(data)
        other = next(v for v in data.variants if v is not data.baseline)
        metric = other.metrics["ttft_p50"]
        metric.difference = metric.low = metric.high = 50 * data.baseline.metrics["ttft_p50"].value
        with mock.patch.object(Axes, "annotate", autospec=True, side_effect=Axes.annotate) as annotate:
            plots.forest(data, of, ["ttft_p50"])
        self.assertIn("+5,000 %", [call.args[1] for call in annotate.call_args_list])

    def test_a_time_series_is_the_mean_over_each_interval(self):
        # 0 until 1 s, 4 until 2 s, 2 from then on; intervals of 1.5 s.
        means = results.step_means(np.array([1.0, 2.0]), np.array([4.0, 2.0]), np.array([0, 1.5, 3.0]))
        self.assertTrue(np.allclose(means, [2 / 1.5, (0.5 * 4 + 1 * 2) / 1.5]))

    def test_the_batch_over_time_holds_all_the_work(self):
        data = results.read(self.database)
        for variant in data.variants:
            seconds = float(variant.series.edges[-1])
            with sqlite3.connect(self.database) as db:
                rows = db.execute(
                    "SELECT scheduled_seqs, start_ns, end_ns FROM step JOIN run ON run.id = run_id"
                    " WHERE variant_id = ? AND repeat = ?",
                    (variant.id, data.series_repeat),
                ).fetchall()
            work = sum(n * (min(end * 1e-9, seconds) - min(start * 1e-9, seconds)) for n, start, end in rows)
            self.assertAlmostEqual(
                float((variant.series.values["batch"] * np.diff(variant.series.edges)).sum()), work, places=9
            )
            self.assertEqual(len(variant.series.arrivals), 16)

    def test_the_same_database_gives_the_same_bytes(self):
        out = self.folder / "again.html"
        self.assertEqual(run_report(self.database, out).returncode, 0)
        self.assertEqual(out.read_text(), self.html)

    def test_what_makes_a_comparison_doubtful_comes_right_after_the_verdict(self):
        path = self.changed(
            "INSERT INTO notice VALUES('run 3 is invalid: 2 sampler faults')",
            "UPDATE difference SET declared = 0 WHERE path = 'engine.max_num_seqs'",
            "UPDATE run SET valid = 0, reason = '2 sampler faults' WHERE position = 2",
        )
        html = page.page(results.read(path))
        self.assertLess(html.index("class='conclusion"), html.index("run 3 is invalid"))
        self.assertLess(html.index("run 3 is invalid"), html.index("<h2>Results"))
        self.assertIn("not declared", html)
        self.assertIn("5 of 6 runs valid<", html)

    def test_attempts_that_do_not_count_are_not_among_the_runs(self):
        html = page.page(results.read(self.changed("UPDATE run SET valid = 0, superseded = 1 WHERE position = 2")))
        self.assertIn("5 of 5 runs valid, 1 more superseded<", html)

    def test_an_experiment_that_did_not_end_is_shown_as_far_as_it_came(self):
        html = page.page(
            results.read(
                self.changed(
                    "DELETE FROM metric",
                    "DELETE FROM comparison",
                    "DELETE FROM run WHERE position > 0",
                    "UPDATE experiment SET end = 'running', conclusion = NULL, winner = NULL",
                )
            )
        )
        self.assertIn("unfinished: no statistics yet", html)
        self.assertIn("CDF of", html)

    def test_runs_without_a_token_leave_gaps_not_errors(self):
        html = page.page(
            results.read(
                self.changed(
                    "UPDATE request SET token_ns = x'', output_ids = x'', output_tokens = 0, finish_reason = 'error'",
                    "UPDATE metric SET value = NULL, difference = NULL, low = NULL, high = NULL, verdict = 'no data'",
                )
            )
        )
        self.assertNotIn("CDF of", html)

    def test_more_variants_than_colours_are_in_the_tables(self):
        more = [
            f"INSERT INTO variant SELECT {i}, 'extra {i}', 0, patch_yaml, effective_yaml, facts_json, plugins_json"
            " FROM variant WHERE id = 1"
            for i in range(3, 14)
        ]
        more += [
            f"INSERT INTO metric SELECT {i}, position, name, label, unit, better, primary_rank, value, difference, low,"
            " high, verdict, scale, p, p_corrected, detectable, bound FROM metric WHERE variant_id = 1"
            for i in range(3, 14)
        ]
        html = page.page(results.read(self.changed(*more)))
        self.assertIn("and 4 more, in the tables only", html)
        self.assertIn("extra 13: effective configuration", html)
        self.assertIn("<th>variant</th>", html)

    def test_more_is_upwards_also_from_below_zero(self):
        metric = results.Metric("plugin.scheduler.slack", "slack", "ms", "neither", -50.0, 5.0, None, None, "", None, None, None)
        self.assertEqual(metric.scale, (2.0, " %"))

    def test_names_of_factors_are_short_where_that_is_clear(self):
        self.assertEqual(results.short_names(["s=a n=1 b=4", "s=b n=1 b=8"]), ["a 4", "b 8"])
        for names in (["one", "two"], ["s=a"], ["s=a", "n=a"], ["s=a", "s=a n=2"]):
            self.assertEqual(results.short_names(names), names)

    def test_runs_steps_and_classes_are_those_of_the_database(self):
        inside = results.read(self.database).breakdown
        self.assertEqual(len(inside.points), self.one("SELECT count(*) FROM run WHERE valid"))
        first = self.one("SELECT 1e9 * sum(output_tokens) / duration_ns FROM request JOIN run ON id = run_id WHERE id = 0")
        self.assertAlmostEqual(inside.points[0].throughput, first)
        run_ms = self.one("SELECT avg(run_ns) / 1e6 FROM step JOIN run ON id = run_id WHERE variant_id = 0 AND scheduled_seqs")
        self.assertAlmostEqual(inside.phases[0][4], run_ms)
        decode = self.one("SELECT avg(decode_tokens) FROM step JOIN run ON id = run_id WHERE variant_id = 0 AND scheduled_seqs")
        self.assertAlmostEqual(inside.batches[0][1], decode)
        thirds = inside.classes["prompt length"]
        self.assertEqual(sum(by[0][0] for by in thirds.values()), 32)
        self.assertNotIn("tenant", inside.classes)

    def test_latencies_are_shown_by_tenant_where_there_are_several(self):
        data = results.read(self.changed("UPDATE request SET tenant = 1 + number % 2, class = 'api' WHERE number > 3"))
        self.assertEqual(sorted(data.breakdown.classes["tenant"]), ["tenant 0", "tenant 1", "tenant 2"])
        self.assertEqual(sorted(data.breakdown.classes["class"]), ["(none)", "api"])
        first = np.median(
            [
                (t - a) * 1e-6
                for t, a in sqlite3.connect(self.database).execute(
                    "SELECT first_token_ns, arrival_ns FROM request JOIN run ON id = run_id"
                    " WHERE variant_id = 0 AND number <= 3"
                )
            ]
        )
        self.assertAlmostEqual(data.breakdown.classes["tenant"]["tenant 0"][0][1], first)
        self.assertIn("TTFT by tenant", page.page(data))

    def test_the_first_tenants_are_shown_by_number_and_the_others_counted(self):
        data = results.read(self.changed("UPDATE request SET tenant = number"))
        self.assertEqual(list(data.breakdown.classes["tenant"]), [f"tenant {i}" for i in range(16)])
        html = page.page(data)
        self.assertIn("TTFT by tenant: from p50 (dot) to p99 (bar); and 8 more, not shown", html)
        self.assertNotIn("more, not shown", self.html)

    def test_equally_good_variants_are_both_on_the_pareto_front(self):
        means = [(9.0, 5.0, "a"), (9.0, 5.0, "b"), (9.0, 6.0, "slower"), (7.0, 5.0, "fewer"), (4.0, 1.0, "c")]
        self.assertEqual([m[2] for m in breakdown.pareto_front(means)], ["c", "a", "b"])

    def test_times_per_token_are_of_the_first_output(self):
        of = lambda path: {  # noqa: E731
            v: by[3] for group in results.read(path).breakdown.classes["prompt length"].values() for v, by in group.items()
        }
        others = self.changed("UPDATE request SET output_tokens = 4 * output_tokens, finish_ns = finish_ns + 1000000000")
        self.assertEqual(of(others), of(self.database))

    def test_a_database_of_the_version_before_is_shown(self):
        columns = ("git_changes", "program_sha256", "capacity_share")
        drop = [f"ALTER TABLE experiment DROP COLUMN {column}" for column in columns]
        drop.append("ALTER TABLE metric DROP COLUMN bound")
        data = results.read(self.changed("DROP TABLE input", *drop, "PRAGMA user_version = 5"))
        self.assertIsNone(data.wanted_share)
        self.assertIn("not known", page.page(data))

    def test_requests_that_do_not_count_are_left_out(self):
        data = results.read(self.changed("UPDATE request SET counted = 0 WHERE number > 3"))
        self.assertEqual(len(data.variants[0].latencies["ttft"]), 8)  # of two repeats
        self.assertEqual(sum(by[0][0] for by in data.breakdown.classes["prompt length"].values()), 8)

    def test_metrics_of_steps_and_plugins_have_their_groups(self):
        with_own = self.changed(
            "INSERT INTO metric SELECT id, 999, 'plugin.scheduler.depth', 'scheduler depth', '', 'neither', NULL, 7.25, NULL,"
            " NULL, NULL, 'exploratory', NULL, NULL, NULL, NULL, NULL FROM variant"
        )
        rows = Reader(page.page(results.read(with_own))).rows
        for title in ("Queue: requests and tokens that wait, and for how long the oldest one", "Plugins' own metrics"):
            self.assertIn([title], rows)
        fragmentation = [self.one(f"SELECT value FROM metric WHERE name = 'kv_fragmentation' AND variant_id = {v}") for v in (0, 1)]
        shown = next(row for row in rows if row[0] == "KV fragmentation")
        for cell, value in zip(shown[1:], fragmentation):
            self.assertTrue(cell.startswith(markup.number(value)), cell)
        self.assertIn(["scheduler depth", "7.25", "7.25", "7.25"], [[cell.strip() for cell in row] for row in rows])

    def test_swaps_and_faults_are_marked_over_time(self):
        data = results.read(self.changed("UPDATE step SET plan_faults = 1 WHERE run_id = 0 AND step = 2"))
        marked = {v.name: [what for _, what in v.markers] for v in data.variants}
        self.assertEqual(marked["three"], ["scheduler → fcfs"])
        self.assertIn("fault", [what for marks in marked.values() for what in marks])
        with mock.patch.object(Axes, "axvline", autospec=True, side_effect=Axes.axvline) as line:
            plots.time_series(data, plots.colours(data), "queue")
        self.assertEqual(line.call_count, 2)

    def test_what_is_no_database_of_results_is_refused_and_an_old_report_kept(self):
        out = self.folder / "kept.html"
        out.write_text("old")
        text = self.folder / "text.sqlite"
        text.write_text("no database, but long enough to be looked at " * 20)
        for path, why in (
            (text, "is not a results database"),
            (self.folder / "nowhere", "is not there"),
            (self.changed("PRAGMA user_version = 99"), "version 99, expected 5 to 6"),
            (self.changed("DELETE FROM experiment"), "holds no experiment"),
        ):
            done = run_report(path, out)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(why, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(out.read_text(), "old")


if __name__ == "__main__":
    unittest.main(verbosity=2)
