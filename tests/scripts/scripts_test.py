"""scripts/test --minutes, scripts/print-slow and the options of scripts/install-deps, in a tree of their own with programs that are made up."""

import os
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "scripts").mkdir()

    def take(self, name):
        shutil.copy(SOURCE / "scripts" / name, self.folder / "scripts" / name)

    def program(self, place, text):
        """An executable of the shell's."""
        path = self.folder / place
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def call(self, script, *options):
        environment = os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        return subprocess.run([self.folder / "scripts" / script, *options], capture_output=True, text=True, env=environment)


class Minutes(Tree):
    """The tests of two programs, by a ctest that says and returns what a case wants."""

    def setUp(self):
        super().setUp()
        self.take("test")
        self.program("scripts/install-deps", "")
        self.program("scripts/newest-first", "echo test_one test_two\n")
        self.program("bin/cmake", "")

    def run_with(self, ctest, *options, tier="sanitize"):
        self.program("bin/ctest", f'echo "$@" >> {self.folder}/called\n{ctest}\n')
        return self.call("test", "--tier", tier, "--minutes", "1", *options)

    def called(self):
        """How ctest was called to run tests."""
        return [line for line in (self.folder / "called").read_text().splitlines() if " -N " not in line]

    def test_counts_what_passed(self):
        done = self.run_with("echo '1/1 Test #1: A.B ... Passed 0.1 sec'")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 tests passed; not run for lack of time: none", done.stdout)
        self.assertEqual(["-L ^test_one$ --no-tests=error" in line for line in self.called()], [True, False])
        self.assertIn("-L ^test_two$", self.called()[1])

    def test_a_ctest_that_fails_fails_the_tier_whatever_it_prints(self):
        passed = "echo '1/1 Test #1: A.B ... Passed 0.1 sec'"
        for ctest in ("echo 'No tests were found!!!'; exit 8", "echo '1/1 Test #1: A ...***Not Run 0.0 sec'; exit 8",
                      f"{passed}; kill -9 $$", f"{passed}; exit 1", "echo '1/1 Test #1: A ...***Failed'; exit 8"):
            done = self.run_with(ctest)
            self.assertEqual(done.returncode, 1, ctest)
            self.assertIn("scripts/test: sanitize tier failed", done.stderr)

    def test_tests_that_are_cut_off_are_left(self):
        done = self.run_with("echo '1/2 Test #1: A ... Passed 0.1 sec'; exit 124")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not run for lack of time: the rest of test_one the rest of test_two", done.stdout)
        done = self.run_with("echo '1/2 Test #1: A ...***Failed'; exit 124")
        self.assertEqual(done.returncode, 1, done.stdout)

    def test_names_the_tests_of_no_program(self):
        done = self.run_with("case \"$*\" in *' -N '*) echo '  Test  #7: Report'; echo '  Test #18: test_two_NOT_BUILT' ;;"
                             " *) echo '1/1 Test #1: A.B ... Passed 0.1 sec' ;; esac")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("lack of time: none; not run, as no test program has them: Report\n", done.stdout)
        self.assertIn(" -N -LE ^(no-sanitize|test_one|test_two)$", (self.folder / "called").read_text())

    def test_warns_where_building_takes_all_the_time(self):
        done = self.run_with("exit 124")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 tests passed; not run for lack of time: the rest of test_one", done.stdout)
        self.assertIn("warning: no test passed, as building took 1 minutes", done.stderr)

    def test_warnings_are_errors_in_ci_whatever_the_build_folder_has(self):
        for ci, expected in (("true", True), ("", False)):
            self.program("bin/cmake", f'echo "$@" >> {self.folder}/cmake\n')
            with unittest.mock.patch.dict(os.environ, {"CI": ci}):
                self.run_with("echo '1/1 Test #1: A.B ... Passed 0.1 sec'")
            configured = (self.folder / "cmake").read_text().splitlines()
            self.assertEqual("-DPATCHBAY_WERROR=ON" in configured[0], expected)
            (self.folder / "cmake").unlink()

    def test_ctest_gets_its_arguments(self):
        done = self.run_with("echo '1/1 Test #1: A.B ... Passed 0.1 sec'", "--", "-R", "A")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in self.called():
            self.assertTrue(line.endswith(" --no-tests=ignore -LE no-sanitize -R A"), line)
        done = self.run_with("echo 'No tests were found!!!'", "--", "-R", "nothing")
        self.assertEqual((done.returncode, done.stderr), (1, "scripts/test: no test was run\n"))

    def test_tiers_without_minutes_are_refused(self):
        for tier in ("fuzz", "nightly"):
            done = self.run_with("", tier=tier)
            self.assertEqual((done.returncode, done.stderr), (2, f"scripts/test: tier {tier} has no --minutes\n"))
        done = self.call("test", "--minutes", "ten")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("got 'ten', expected a whole number", done.stderr)


class PrintSlow(Tree):
    def setUp(self):
        super().setUp()
        self.take("print-slow")
        (self.folder / "tests").mkdir()
        (self.folder / "tests/slow-tests.txt").write_text("# a comment\nLong.*  it waits for a browser\n")

    def run_on(self, seconds, ci):
        cases = "".join(f'<testcase name="{name}" time="{time}"/>' for name, time in seconds.items())
        (self.folder / "tests.xml").write_text(f"<testsuite>{cases}</testsuite>")
        with unittest.mock.patch.dict(os.environ, {"CI": ci}):
            return self.call("print-slow", str(self.folder / "tests.xml"))

    def test_prints_each_slow_test_with_its_reason(self):
        done = self.run_on({"Short.A": 5, "Long.A": 300, "Other.A": 59}, "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("2 of 3 tests took more than 5 s", done.stdout)
        self.assertIn("300.0 s  Long.A: it waits for a browser\n", done.stdout)
        self.assertIn("59.0 s  Other.A: no reason in tests/slow-tests.txt", done.stdout)

    def test_fails_in_ci_where_one_without_a_reason_is_far_over_the_limit(self):
        done = self.run_on({"Other.A": 61}, "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Other.A took 61 s, expected at most 60 s without a reason", done.stderr)
        self.assertEqual(self.run_on({"Other.A": 61}, "").returncode, 0)


class InstallDeps(Tree):
    def setUp(self):
        super().setUp()
        self.take("install-deps")
        self.take("requirements-report.txt")
        self.program("bin/dpkg-query", "echo -n installed\n")
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else "python3"
        said = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout
        self.version = said.strip().rpartition(".")[0]  # "Python 3.11"

    def installed(self, version):
        (self.folder / ".venv").mkdir(exist_ok=True)
        wanted = (SOURCE / "scripts/requirements-report.txt").read_text()
        (self.folder / ".venv/installed-requirements.txt").write_text(f"{wanted}{version}\n")

    def test_makes_the_environment_again_for_another_python(self):
        self.installed(self.version)
        self.assertEqual(self.call("install-deps").stdout, "")
        self.installed("Python 2.7")
        (self.folder / "venv.py").write_text("print('venv is run')\nraise SystemExit(1)")  # it comes no further
        with unittest.mock.patch.dict(os.environ, {"PYTHONPATH": str(self.folder)}):
            done = self.call("install-deps")
        self.assertEqual(done.stdout, "install-deps: making .venv for the report's plots\nvenv is run\n")

    def test_refuses_what_it_does_not_know(self):
        self.installed(self.version)
        for options in ((), ("--test",), ("--fuzz",), ("--nightly",), ("--help",)):
            self.assertEqual(self.call("install-deps", *options).returncode, 0, options)
        for options, why in ((("--tets",), "unknown option '--tets'"), (("--test", "--cuda"), "got 2 options")):
            done = self.call("install-deps", *options)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
