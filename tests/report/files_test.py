"""Files that other scripts of scripts/report write: a table as Parquet, a plot of a trace."""

import importlib.util
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from stand import SCRIPT

import plots
import workload


class Parquet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.database, self.out = self.folder / "r.sqlite", self.folder / "t.parquet"
        self.change("CREATE TABLE t (number INTEGER, name TEXT)", "INSERT INTO t VALUES (1, 'one'), (2, NULL)")

    def change(self, *statements):
        db = sqlite3.connect(self.database)
        with db:
            for statement in statements:
                db.execute(statement)
        db.close()

    def export(self, out=None):
        command = [sys.executable, "-B", SCRIPT / "parquet.py", self.database, "t", "--out", out or self.out]
        return subprocess.run(command, capture_output=True, text=True)

    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "no pyarrow")
    def test_a_table_that_cannot_be_written_leaves_the_file_before(self):
        self.assertEqual(self.export().returncode, 0)
        before = self.out.read_bytes()
        self.change("INSERT INTO t VALUES ('many', 'three')")
        for out in (self.out, self.folder / "new.parquet"):
            done = self.export(out)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stderr.startswith("parquet: cannot export table 't' of "), done.stderr)
            self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(self.out.read_bytes(), before)
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()), ["r.sqlite", "t.parquet"])


class Missing(unittest.TestCase):
    """Scripts, run by a Python that has no packages."""

    def say(self, scripts, name, *arguments):
        command = [sys.executable, "-I", "-S", "-B", "-c",
                   "import runpy, sys; sys.path.insert(0, sys.argv[1]); sys.argv[:2] = [];"
                   "runpy.run_path(sys.argv[0], run_name='__main__')", scripts, scripts / name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr

    def test_installed_scripts_name_what_is_there(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder).resolve()
            installed = folder / "scripts/report"
            shutil.copytree(SCRIPT, installed)
            database = folder / "r.sqlite"
            plot = (database, "--out", folder / "t.svg")
            database.write_text("{}")
            for scripts, said in ((SCRIPT, ": run scripts/install-deps\n"),
                                  (installed, f" that has what {folder}/scripts/requirements-report.txt names\n")):
                self.assertTrue(self.say(scripts, "parquet.py", database, "t", "--out", "t.parquet").endswith(said))
                self.assertTrue(self.say(scripts, "workload.py", *plot).endswith(said))
                self.assertTrue(self.say(scripts, "__main__.py", database).endswith(said))
            self.assertIn(": apt install python3-matplotlib, or set", self.say(installed, "workload.py", *plot))
            self.assertNotIn("apt install", self.say(installed, "parquet.py", database, "t", "--out", "t.parquet"))


class TracePlot(unittest.TestCase):
    def test_is_made_of_what_describe_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "t.csv"
            rows = "".join(f"{i},{10 + i % 7},5,{'a' if i % 3 else 'b'}\n" for i in range(60))
            trace.write_text("Timestamp,Request tokens,Response tokens,Log Type\n" + rows)
            for name in ("t.svg", "t.png"):
                out = Path(folder) / name
                subprocess.run([os.environ["PATCHBAY"], "workload", "describe", trace, "--plot", out], check=True,
                               env={**os.environ, "PATCHBAY_PYTHON": sys.executable}, stdout=subprocess.DEVNULL)
                self.assertGreater(out.stat().st_size, 5000)
            wrong = subprocess.run([os.environ["PATCHBAY"], "workload", "describe", trace, "--plot", "t.gif"],
                                   env={**os.environ, "PATCHBAY_PYTHON": sys.executable}, capture_output=True, text=True)
            self.assertIn("expected .svg, .png or .pdf", wrong.stderr)
            self.assertEqual(wrong.returncode, 1)

    def test_shows_names_and_numbers_as_they_are(self):
        data = {"name": "a$_$b", "requests": 6, "known_tokens": 0, "rates": [], "classes": [{"name": "$_$", "requests": 6}],
                "lengths": [{"name": "prompt", "unit": "tokens", "quantiles": [5, 9, 16]}]}
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(plots.plt.rcParams, {"svg.fonttype": "none"}):
            workload.draw(data, Path(folder) / "t.svg")
            text = (Path(folder) / "t.svg").read_text()
        for shown in (">a$_$b: 6 requests<", ">$_$<", ">6<"):
            self.assertIn(shown, text)
        self.assertNotIn("mathdefault", text)

    def test_says_how_many_classes_it_leaves_out(self):
        data = {"name": "t", "requests": 15, "known_tokens": 0, "rates": [], "lengths": [],
                "classes": [{"name": str(i), "requests": 1} for i in range(15)]}
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(plots.plt.rcParams, {"svg.fonttype": "none"}):
            workload.draw(data, Path(folder) / "t.svg")
            self.assertIn(">requests; and 3 more classes, not shown<", (Path(folder) / "t.svg").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
