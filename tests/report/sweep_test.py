"""The report of a sweep: classes, curves over a factor, capacities, quality, and requests over time."""

import copy
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from matplotlib.axes import Axes

from stand import SOURCE, Reader

import gantt
import markup
import page
import results
import sweeps

SWEEP = f"""
include: [{SOURCE}/configs/hardware/h200.yaml, {SOURCE}/configs/models/llama-3.1-8b.yaml]
engine: {{kv_cache_memory: 4GB, max_num_seqs: 16}}
simulation: {{run_jitter: 0.02}}
factors:
  scheduler: [fcfs, sjf]
  workload.arrivals.poisson.rate: [5, 20, 80]
repeats: 5
by: tenant
workload:
  requests: 30
  prompts: {{synthetic: {{tokens: {{uniform: {{min: 16, max: 512}}}}}}}}
  output_tokens: 8
  arrivals: {{poisson: {{rate: 5}}}}
  tenants: [1, 1]
capacity: {{slo: {{ttft_ms: 40}}, rates: [4, 400], precision: 50%}}
"""


class Sweep(unittest.TestCase):
    """Classes, a factor that is a number, capacities, and some requests over time."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="patchbay-report-"))
        (cls.folder / "s.yaml").write_text(SWEEP)
        environment = {**os.environ, "PATCHBAY_PYTHON": sys.executable}
        command = [os.environ["PATCHBAY"], "run", "s.yaml", "--results", "r"]
        done = subprocess.run(command, cwd=cls.folder, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.html = (cls.folder / "r" / "report.html").read_text()
        cls.read = Reader(cls.html)
        cls.data = results.read(cls.folder / "r" / "results.sqlite")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_classes_are_those_of_the_table(self):
        self.assertEqual(list(self.data.classes["tenant"]), ["1", "2"])
        with sqlite3.connect(self.folder / "r" / "results.sqlite") as db:
            value = db.execute(
                "SELECT value FROM by_class WHERE class = '2' AND variant_id = 1 AND name = 'ttft_p50'"
            ).fetchone()[0]
        self.assertEqual(self.data.classes["tenant"]["2"][1][1]["ttft_p50"].value, value)
        self.assertIn("By tenant", self.read.texts)
        self.assertIn(markup.with_unit(value, "ms"), "".join(self.read.texts))

    def test_a_factor_that_is_a_number_makes_curves(self):
        sweep = self.data.sweep
        self.assertEqual(sweep.path, "workload.arrivals.poisson.rate")
        self.assertEqual(sweep.lines, {"scheduler=fcfs": [(5, 0), (20, 1), (80, 2)], "scheduler=sjf": [(5, 3), (20, 4), (80, 5)]})
        drawn = []
        with mock.patch.object(Axes, "plot", autospec=True, side_effect=lambda axes, *a, **k: drawn.append(a)):
            with mock.patch.object(Axes, "legend"):
                sweeps.sweep_plot(self.data, sweep)
        throughput = [self.data.variants[v].metrics["output_throughput"].value for v in (0, 1, 2)]
        self.assertEqual(list(drawn[0][0]), throughput)

    def test_a_curve_without_values_leaves_the_other(self):
        def drawn(*without):
            data = copy.deepcopy(self.data)
            for variant in data.variants:
                for name in without:
                    variant.metrics[name].value = None
            with mock.patch.object(Axes, "set_title", autospec=True) as title:
                svg = sweeps.sweep_plot(data, data.sweep)
            return svg is not None, [call.args[1] for call in title.call_args_list]
        self.assertEqual(drawn("tpot_p99"), (True, ["TTFT p99"]))
        self.assertEqual(drawn("ttft_p99"), (True, ["TPOT p99"]))
        self.assertEqual(drawn("ttft_p99", "tpot_p99"), (False, []))

    def test_words_make_no_curve(self):
        self.assertFalse(sweeps.sweep_of({i: {"scheduler": s} for i, s in enumerate(("a", "b", "c"))}).lines)
        self.assertFalse(sweeps.sweep_of({i: {"engine.max_num_seqs": s} for i, s in enumerate(("8", "16"))}).lines)

    def test_capacities_have_their_curve(self):
        self.assertEqual(set(self.data.searches), set(range(6)))
        self.assertEqual(self.data.wanted_share, 0.9)
        self.assertIn("Share of requests that kept the objective, over the rate of arrivals", self.read.texts)
        drawn = []
        colours = {variant: "black" for variant in self.data.searches}
        with mock.patch.object(Axes, "plot", autospec=True, side_effect=lambda axes, *a, **k: drawn.append(a)):
            with mock.patch.object(Axes, "legend"):
                sweeps.capacity_plot(self.data, self.data.searches, colours, self.data.wanted_share)
        runs = [(search.rates, search.shares, "o") for search in (self.data.searches[v.id] for v in self.data.variants)]
        self.assertEqual(drawn, runs)  # no line through them

    def test_quality_stands_beside_speed(self):
        path = Path(tempfile.mkdtemp(dir=self.folder)) / "results.sqlite"
        shutil.copy(self.folder / "r" / "results.sqlite", path)
        with sqlite3.connect(path) as db:
            db.execute("INSERT INTO quality VALUES (0, 2040, 40.3, 1, 1, 1, 1, 8, 1, 1)")
            db.execute("INSERT INTO quality VALUES (1, 2040, 44.3, 1.1, 1.05, 1.15, 0.996, 8, 0.75, 0.875)")
        rows = Reader(page.page(results.read(path))).rows
        self.assertIn(["fcfs 20", "44.3", "+10.0 % +5.0 … +15.0", "99.6 %", "75.0 %", "87.5 %"], rows)

    def test_requests_over_time_are_the_same_for_all(self):
        chart = self.data.gantt
        self.assertEqual(len(chart.numbers), gantt.SLOWEST + gantt.SPREAD)
        longest = max(chart.numbers, key=lambda n: max(bars[n][3] - bars[n][0] for bars in chart.bars.values()))
        self.assertIn(longest, chart.slow)
        for bars in chart.bars.values():
            self.assertEqual(sorted(bars), sorted(chart.numbers))
            for arrival, started, token, end, _ in bars.values():
                self.assertTrue(arrival <= started <= token <= end)


if __name__ == "__main__":
    unittest.main(verbosity=2)
