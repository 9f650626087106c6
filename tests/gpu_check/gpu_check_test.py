"""scripts/gpu-check, its stages replaced by ones that need no GPU: what a call runs, leaves, and takes up again."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "scripts"))
from gpu_check import bundle, main, stages  # noqa: E402


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = folder.name
        self.ran = []

    def stage(self, name, what="found", **more):
        def run(context):
            self.ran.append(name)
            answer = what() if callable(what) else what
            if isinstance(answer, Exception):
                raise answer
            return answer
        return stages.Stage(name, run, **more)

    def call(self, wanted, *options):
        """One call with these stages; gives its exit code."""
        self.ran.clear()
        arguments = ["gpu-check", "--out", self.out, *options]
        with mock.patch.object(main, "STAGES", wanted), mock.patch.object(sys, "argv", arguments), \
                contextlib.redirect_stdout(io.StringIO()):
            return main.main("")

    def state(self, name):
        return json.loads(Path(self.out, "results.json").read_text())["stages"][name]["state"]

    def test_what_has_passed_is_not_run_again(self):
        wanted = [self.stage("build", always=True), self.stage("kernels", needs=("build",))]
        self.assertEqual(self.call(wanted), 0)
        self.assertEqual(self.call(wanted), 0)
        self.assertEqual(self.ran, ["build"])
        self.call(wanted, "--fresh")
        self.assertEqual(self.ran, ["build", "kernels"])
        self.call(wanted, "--only", "kernels")
        self.assertEqual(self.ran, ["kernels"])

    def test_a_stage_that_was_cut_off_is_taken_up_by_the_next_call(self):
        answers = iter([subprocess.TimeoutExpired("ninja", 1), "built"])
        wanted = [self.stage("build", lambda: next(answers)), self.stage("kernels", needs=("build",))]
        self.assertEqual(self.call(wanted), 3)
        self.assertEqual((self.ran, self.state("build")), (["build"], "unfinished"))
        self.assertEqual(self.call(wanted), 0)
        self.assertEqual(self.ran, ["build", "kernels"])

    def test_no_stage_begins_with_less_time_than_it_wants(self):
        wanted = [self.stage("machine"), self.stage("bench", least=120)]
        self.assertEqual(self.call(wanted, "--minutes", "1.5"), 3)
        self.assertEqual(self.ran, ["machine"])
        self.assertEqual(self.call(wanted), 0)
        self.assertEqual(self.ran, ["bench"])

    def test_what_hangs_on_a_failure_waits_and_the_rest_goes_on(self):
        wanted = [self.stage("build"), self.stage("graphs", RuntimeError("the texts differ"), needs=("build",)),
                  self.stage("swaps", needs=("graphs",)), self.stage("bench", {"reached": 0.8}, needs=("build",))]
        self.assertEqual(self.call(wanted), 1)
        self.assertEqual(self.ran, ["build", "graphs", "bench"])
        self.assertEqual([self.state(s.name) for s in wanted], ["passed", "failed", "waits", "passed"])
        written = json.loads(Path(self.out, "results.json").read_text())
        self.assertEqual(written["measured"], {"bench": {"reached": 0.8}})
        self.assertIn("| graphs | failed |", Path(self.out, "results.md").read_text())
        self.call(wanted)
        self.assertEqual(self.ran, ["graphs"])

    def test_a_command_ends_with_its_call(self):
        context = stages.Context(self.out, self.out, None, None, deadline=0, dry_run=False, patience=0.1)
        for command in ("sleep 1000", "trap '' TERM; echo begun; while :; do sleep 1; done"):
            with self.assertRaises(subprocess.TimeoutExpired):
                context.call("stays", ["sh", "-c", command])

    def test_a_test_that_is_skipped_for_want_of_a_gpu_is_a_failure_there(self):
        context = mock.Mock(dry_run=False)
        context.call.return_value = "[  SKIPPED ] Cuda.Adds (0 ms)\n[  PASSED  ] 3 tests.\n"
        with self.assertRaisesRegex(RuntimeError, "1 skipped: Cuda.Adds"):
            stages.tests_of(context, "kernels", ["test_cuda_gpu"])
        context.call.return_value = "[  PASSED  ] 4 tests.\n"
        self.assertEqual(stages.tests_of(context, "kernels", ["test_cuda_gpu"]), "4 tests passed")

    def test_every_stage_needs_what_comes_before_it(self):
        seen = set()
        for stage in stages.STAGES:
            self.assertLessEqual(set(stage.needs), seen, stage.name)
            self.assertLess(stage.least, 8.5 * 60, stage.name)
            seen.add(stage.name)

    def test_the_tree_and_a_bundle_are_at_most_64_mib(self):
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True)
        if listed.returncode != 0:
            self.skipTest("not a checkout of git")
        tree = sum((SOURCE / p).stat().st_size for p in os.fsdecode(listed.stdout).split("\0")
                   if p and (SOURCE / p).is_file())
        self.assertLessEqual(tree + bundle.LARGEST, 64 << 20)

    def test_a_dry_run_shows_every_command_and_runs_none(self):
        shown = subprocess.run([SOURCE / "scripts/gpu-check", "--dry-run", "--out", self.out], capture_output=True,
                               text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for stage in stages.STAGES:
            self.assertIn(f"== {stage.name}\n", shown.stdout)
        for command in ("nvidia-smi", "compute-sanitizer --tool racecheck", "bench model", "ninja -C"):
            self.assertIn(command, shown.stdout)
        self.assertEqual(os.listdir(self.out), [])


if __name__ == "__main__":
    unittest.main()
