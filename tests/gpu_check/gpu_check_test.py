"""scripts/gpu-check without a GPU: what a call runs, leaves and takes up again, by stages that are made up; and what
the real stages call and make of it, by programs that are made up."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "scripts"))
from gpu_check import bundle, context, main, stages, texts  # noqa: E402


class Calls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work, self.out = os.path.join(folder.name, "work"), os.path.join(folder.name, "out")
        self.ran = []

    def stage(self, name, what="found", **more):
        def run(context):
            self.ran.append(name)
            answer = what(context) if callable(what) else what
            if isinstance(answer, Exception):
                raise answer
            return answer
        return stages.Stage(name, run, **more)

    def call(self, wanted, *options):
        """One call with these stages; gives its exit code."""
        self.ran.clear()
        arguments = ["gpu-check", "--work", self.work, "--out", self.out, *options]
        with mock.patch.object(main, "STAGES", wanted), mock.patch.object(sys, "argv", arguments), \
                contextlib.redirect_stdout(io.StringIO()):
            return main.main("")

    def results(self):
        return json.loads(Path(self.out, "results.json").read_text())

    def state(self, name):
        return self.results()["stages"][name]["state"]

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
        wanted = [self.stage("build", lambda _: next(answers)), self.stage("kernels", needs=("build",))]
        self.assertEqual(self.call(wanted), 3)
        self.assertEqual((self.ran, self.state("build")), (["build"], "unfinished"))
        self.assertEqual(self.call(wanted), 0)
        self.assertEqual(self.ran, ["build", "kernels"])

    def test_no_stage_begins_with_less_time_than_it_wants(self):
        wanted = [self.stage("machine"), self.stage("bench", least=120), self.stage("plot", needs=("bench",)),
                  self.stage("quick")]
        self.assertEqual(self.call(wanted, "--minutes", "1.5"), 3)
        self.assertEqual(self.ran, ["machine", "quick"])
        self.assertEqual(self.call(wanted), 0)
        self.assertEqual(self.ran, ["bench", "plot"])

    def test_what_needs_a_failure_waits_and_the_rest_goes_on(self):
        wanted = [self.stage("build"), self.stage("graphs", RuntimeError("the texts differ"), needs=("build",)),
                  self.stage("swaps", needs=("graphs",)), self.stage("bench", {"reached": 0.8}, needs=("build",))]
        self.assertEqual(self.call(wanted), 1)
        self.assertEqual(self.ran, ["build", "graphs", "bench"])
        self.assertEqual([self.state(s.name) for s in wanted], ["passed", "failed", "waits", "passed"])
        self.assertEqual(self.results()["measured"], {"bench": {"reached": 0.8}})
        self.assertIn("| graphs | failed |", Path(self.out, "results.md").read_text())
        self.call(wanted, "--only", "swaps")
        self.assertEqual((self.ran, self.state("swaps")), (["swaps"], "passed"))

    def test_what_failed_before_runs_after_what_never_ran(self):
        first = [self.stage("graphs", RuntimeError("the texts differ"))]
        self.assertEqual(self.call(first), 1)
        self.assertEqual(self.call([*first, self.stage("bench")]), 1)
        self.assertEqual(self.ran, ["bench", "graphs"])

    def test_a_stage_that_takes_too_long_fails_and_the_next_begins(self):
        wanted = [self.stage("racecheck", lambda c: c.call("slow", ["sleep", "1000"]), most=1.5), self.stage("bench")]
        begun = time.monotonic()
        self.assertEqual(self.call(wanted), 1)
        self.assertLess(time.monotonic() - begun, 120)
        self.assertEqual([self.state("racecheck"), self.state("bench")], ["failed", "passed"])

    def test_a_stage_that_calls_cut_off_is_not_begun_for_ever(self):
        wanted = [self.stage("racecheck", lambda c: c.call("slow", ["sleep", "1000"]), most=600, least=0)]
        self.assertEqual(self.call(wanted, "--minutes", "0.02"), 3)
        self.assertEqual(self.state("racecheck"), "unfinished")
        self.assertEqual(self.call(wanted, "--minutes", "0.02"), 1)
        self.assertEqual(self.state("racecheck"), "failed")

    def test_a_stage_in_which_calls_were_killed_is_not_begun_for_ever(self):
        wanted = [self.stage("hangs", KeyboardInterrupt(), most=600), self.stage("bench")]
        for _ in range(main.MAX_TRIES):
            with self.assertRaises(KeyboardInterrupt):
                self.call([stages.Stage("hangs", mock.Mock(side_effect=KeyboardInterrupt), most=600)])
            self.assertEqual(self.state("hangs"), "running")
        self.assertEqual(self.call(wanted), 1)
        self.assertEqual((self.ran, self.state("hangs"), self.state("bench")), (["bench"], "failed", "passed"))

    def test_what_is_known_is_written_after_every_stage(self):
        seen = []

        def look(context):
            context.call("look", ["echo", "a line of the log"])
            seen.append(self.state("machine"))
            with tarfile.open(os.path.join(self.out, "logs.tar.gz")) as tar:
                seen.append(tar.getnames())
            return "seen"
        wanted = [self.stage("machine", lambda c: c.call("machine", ["echo", "hello"])), self.stage("look", look)]
        self.assertEqual(self.call(wanted), 0)
        self.assertEqual(seen, ["passed", ["logs", "logs/machine.log"]])
        with tarfile.open(os.path.join(self.out, "logs.tar.gz")) as tar:
            self.assertIn(b"a line of the log", tar.extractfile("logs/look.log").read())
        self.assertEqual(os.listdir(self.out).count("logs.tar.gz.new"), 0)

    def test_results_go_to_the_environments_out_unless_another_is_given(self):
        with mock.patch.dict(os.environ, {"OUT": self.out}), mock.patch.object(sys, "argv", ["gpu-check"]):
            self.assertEqual(main.arguments("").out, self.out)
        with mock.patch.object(main, "STAGES", [self.stage("machine")]), \
                mock.patch.dict(os.environ, {"OUT": self.out}), \
                mock.patch.object(sys, "argv", ["gpu-check", "--work", self.work]), \
                contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(main.main(""), 0)
        self.assertEqual(self.state("machine"), "passed")

    def test_a_command_ends_with_its_call(self):
        there = context.Context(self.out, self.work, None, None, deadline=0, dry_run=False, patience=0.1)
        for command in ("sleep 1000", "trap '' TERM; echo begun; while :; do sleep 1; done"):
            with self.assertRaises(subprocess.TimeoutExpired):
                there.call("stays", ["sh", "-c", command])

    def test_an_interrupted_call_leaves_no_command(self):
        there = context.Context(self.out, self.work, None, None, deadline=time.monotonic() + 60, dry_run=False, patience=5)
        held = os.path.join(self.work, "held")  # open for writing as long as the command or what it started lives
        os.makedirs(self.work, exist_ok=True)
        os.mkfifo(held)
        readers = []

        def interrupt(process, *given):
            if readers:  # the first wait is interrupted; those of the end are real
                return wait(process, *given)
            readers.append(open(held, encoding="utf8"))
            self.addCleanup(readers[0].close)
            self.assertEqual(readers[0].readline(), "begun\n")
            raise KeyboardInterrupt
        wait = subprocess.Popen.wait
        with mock.patch.object(subprocess.Popen, "wait", interrupt), self.assertRaises(KeyboardInterrupt):
            there.call("stays", ["sh", "-c", f"exec 9> '{held}'; sleep 1000 & echo begun >&9; sleep 1000"])
        self.assertEqual(readers[0].read(), "")  # which returns when all of them have ended

    def end_by(self, number):
        """scripts/gpu-check, which gets this signal while a command runs; its exit code, and what it printed."""
        folder = Path(self.work).parent
        held = folder / "held"  # open for writing as long as the command or what it started lives
        os.mkfifo(held)
        smi = folder / "nvidia-smi"  # the first command of the first stage
        smi.write_text(f"#!/bin/sh\nexec 9> '{held}'; sleep 1000 & echo a line; echo begun >&9; sleep 1000\n")
        smi.chmod(0o755)
        # A job in the background of a shell has SIGINT ignored, and so would what it starts.
        self.addCleanup(signal.signal, number, signal.signal(number, lambda *_: None))
        with subprocess.Popen([SOURCE / "scripts/gpu-check", "--fresh", "--work", self.work, "--out", self.out],
                              env=dict(os.environ, PATH=f"{folder}:/usr/bin:/bin"), stdout=subprocess.PIPE,
                              text=True) as process:
            with open(held, encoding="utf8") as reader:
                self.assertEqual(reader.readline(), "begun\n")
                process.send_signal(number)
                shown = process.communicate()[0]
                self.assertEqual(reader.read(), "")  # which returns when all of them have ended
        os.remove(held)
        return process.returncode, shown

    def test_a_signal_ends_the_command_and_what_is_known_is_written(self):
        for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
            code, shown = self.end_by(number)
            self.assertEqual(code, 128 + number, shown)
            self.assertIn("gpu-check: call again for machine, ", shown)
            machine = self.results()["stages"]["machine"]
            self.assertEqual((machine["state"], machine["found"]), ("unfinished", f"ended by {name}"))
            self.assertIn("| machine | unfinished |", Path(self.out, "results.md").read_text())
            with tarfile.open(os.path.join(self.out, "logs.tar.gz")) as tar:
                self.assertEqual(tar.extractfile("logs/machine.log").read(), b"a line\n")

    def test_commands_of_several_threads_end_and_no_other_begins(self):
        def stage(there):
            def command(i):
                return there.call(f"stays-{i}", ["sh", "-c", "kill -TERM $PPID; sleep 1000"])
            return there.each(range(50), command, 2)
        wanted = [self.stage("probes", stage), self.stage("bench")]
        self.assertEqual(self.call(wanted), 128 + signal.SIGTERM)
        self.assertEqual((self.ran, self.state("probes")), (["probes"], "unfinished"))
        self.assertLessEqual(len(os.listdir(os.path.join(self.work, "logs"))), 2)
        self.assertEqual(self.call([self.stage("probes"), self.stage("bench")]), 0)

    def test_folders_are_those_of_the_caller(self):
        with tempfile.TemporaryDirectory() as folder:
            def call(*options):
                return subprocess.run([SOURCE / "scripts/gpu-check", *options], cwd=folder, capture_output=True, text=True)
            folder = os.path.realpath(folder)
            shown = call("--dry-run", "--work", "w", "--packages", "p")
            self.assertIn(f"ninja -C {folder}/w/build ", shown.stdout)
            self.assertIn(f"PATCHBAY_NVIDIA_PACKAGES={folder}/p\n", shown.stdout)
            refused = call("--bundle", "b", "--programs", "--build", "nothing")
            self.assertIn(f"{folder}/nothing has no ", refused.stderr)
            self.addCleanup(os.chdir, os.getcwd())
            os.chdir(folder)
            with mock.patch.object(sys, "argv", ["gpu-check", "--with", "b", "--out", "o", "--bundle", "c"]):
                given = main.arguments("")
            self.assertEqual([given.bundled, given.out, given.bundle], [f"{folder}/{name}" for name in "boc"])
            self.assertEqual(given.work, str(SOURCE / "build/gpu-check"))

    def test_a_test_that_is_skipped_for_want_of_a_gpu_is_a_failure_there(self):
        there = mock.Mock(dry_run=False, code=0)
        there.call.return_value = "[  SKIPPED ] Cuda.Adds (0 ms)\n[  PASSED  ] 3 tests.\n"
        with self.assertRaisesRegex(RuntimeError, "1 skipped: Cuda.Adds"):
            stages.tests_of(there, "kernels", ["test_cuda_gpu"])
        there.call.return_value = "[  PASSED  ] 4 tests.\n"
        self.assertEqual(stages.tests_of(there, "kernels", ["test_cuda_gpu"]), "4 tests passed")

    def test_tests_pass_only_if_some_ran_and_their_program_ended_well(self):
        there = mock.Mock(dry_run=False, code=0, build="b")
        passed = "[  PASSED  ] 4 tests.\n"
        clean = "========= ERROR SUMMARY: 0 errors\n"
        run = stages.sanitizer("memcheck", "sampling")
        there.call.return_value = passed + clean
        self.assertIn("0 errors", run(there))
        for text, code, why in [("[  PASSED  ] 0 tests.\n", 0, "no test passed"), (passed, 139, "ended with 139"),
                                (passed + "[  FAILED  ] Cuda.Adds\n", 1, "1 failed: Cuda.Adds")]:
            there.code = code
            there.call.return_value = text + clean
            with self.assertRaisesRegex(RuntimeError, why):
                stages.tests_of(there, "kernels", ["test_cuda_gpu"])
            with self.assertRaisesRegex(RuntimeError, why):
                run(there)
        there.call.side_effect = FileNotFoundError()
        with self.assertRaisesRegex(RuntimeError, "compute-sanitizer is not on this machine"):
            run(there)

    def test_a_machine_without_the_toolkit_is_named_all_the_same(self):
        there = mock.Mock(dry_run=False)
        there.call.side_effect = ["NVIDIA H200, 9.0, 143771 MiB, 570.1\n", FileNotFoundError()]
        found = stages.machine(there)
        self.assertEqual((found["gpu"], found["nvcc"]), ("NVIDIA H200", "none"))

    def test_what_other_programs_passed_is_run_again(self):
        wanted = [self.stage("kernels")]
        with tempfile.TemporaryDirectory() as folder:
            programs = Path(folder, "programs.tar.xz")
            programs.write_bytes(b"one")
            self.call(wanted, "--with", folder)
            self.call(wanted, "--with", folder)
            self.assertEqual(self.ran, [])
            programs.write_bytes(b"two")
            self.call(wanted, "--with", folder)
            self.assertEqual(self.ran, ["kernels"])

    def test_what_other_builds_passed_is_run_again_in_the_same_call(self):
        made = iter(["one", "one", "two"])

        def make(context):
            program = Path(context.build, "bin/program")
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(next(made))
        wanted = [self.stage("other", {"speed": 1}), self.stage("build", make, always=True, makes=("bin/*",)),
                  self.stage("kernels", needs=("build",)), self.stage("bench", RuntimeError("slow"), needs=("build",))]
        self.call(wanted)
        self.call(wanted)
        self.assertEqual(self.ran, ["build", "bench"])
        self.call(wanted)
        self.assertEqual(self.ran, ["build", "kernels", "bench"])
        self.assertEqual(self.results()["measured"], {"other": {"speed": 1}})

    def test_builds_say_what_they_make_for_the_stages_that_need_them(self):
        for stage in stages.STAGES:
            for need in stage.needs:
                if not stage.always:
                    self.assertTrue(next(s for s in stages.STAGES if s.name == need).makes, stage.name)

    def test_every_stage_needs_what_comes_before_it(self):
        seen = set()
        for stage in stages.STAGES:
            self.assertLessEqual(set(stage.needs), seen, stage.name)
            self.assertLess(stage.least, 8.5 * 60, stage.name)
            self.assertLessEqual(stage.most or 0, 8.5 * 60, stage.name)
            seen.add(stage.name)

    def test_only_what_is_built_is_needed(self):
        """A wrong result blocks no other stage; neither does a GPU that is not there block the build."""
        for stage in stages.STAGES:
            for need in stage.needs:
                self.assertTrue(need == "configure" or need.startswith("build_"), stage.name)

    def test_the_sanitizers_come_last(self):
        tools = [stage.name.split("_")[0] in stages.SANITIZED for stage in stages.STAGES]
        self.assertIn(True, tools)
        self.assertEqual(tools, sorted(tools))

    def test_the_tree_and_a_bundle_are_at_most_64_mib(self):
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True)
        if listed.returncode != 0:
            self.skipTest("not a checkout of git")
        tree = sum((SOURCE / p).stat().st_size for p in os.fsdecode(listed.stdout).split("\0")
                   if p and (SOURCE / p).is_file())
        self.assertLessEqual(tree + bundle.LARGEST, 64 << 20)

    def test_a_dry_run_shows_every_command_and_runs_none(self):
        shown = subprocess.run([SOURCE / "scripts/gpu-check", "--dry-run", "--out", self.out, "--work", self.work],
                               capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for stage in stages.STAGES:
            self.assertIn(f"== {stage.name}\n", shown.stdout)
        for command in ("nvidia-smi", "compute-sanitizer --tool racecheck", "bench model", "ninja -C"):
            self.assertIn(command, shown.stdout)
        self.assertFalse(os.path.exists(self.out) or os.path.exists(self.work))


class Commands(unittest.TestCase):
    """The real stages, over programs that are made up."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.there = context.Context(str(SOURCE), str(self.folder / "work"), None, None, time.monotonic() + 60, False,
                                     toolkit=str(self.folder / "cuda"))

    def program(self, place, text):
        """An executable of the shell's."""
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def patchbay(self, text):
        self.program("work/build/bin/patchbay", text)

    def environment(self, **variables):
        return mock.patch.dict(os.environ, variables)

    def test_the_toolkit_is_found_outside_of_the_path(self):
        self.program("cuda/nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.48'\n")
        self.program("bin/nvidia-smi", "echo 'NVIDIA H200, 9.0, 143771 MiB, 580.1'\n")
        self.program("bin/cmake", 'for a; do echo "$a"; done; mkdir -p "$4"; '
                     'echo "PATCHBAY_CUBLASLT:FILEPATH=/there" > "$4/CMakeCache.txt"\n')
        with self.environment(PATH=f"{self.folder}/bin:/usr/bin:/bin"):
            self.assertEqual(stages.machine(self.there)["nvcc"], "13.0")
            self.assertEqual(stages.configure(self.there), "/there")
        given = (self.folder / "work/logs/configure.log").read_text().splitlines()
        self.assertIn(f"-DCMAKE_CUDA_COMPILER={self.folder}/cuda/nvcc", given)
        self.assertIn("-DPATCHBAY_CUDA_ARCHITECTURES=90", given)

    def test_programs_of_a_bundle_take_the_place_of_a_build(self):
        build, out = self.folder / "finished", str(self.folder / "out")
        plugin = "lib/patchbay/plugins/device-cuda.so"
        for place in [*(f"bin/{name}" for name in bundle.BUILT), plugin]:
            (build / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(shutil.which("true"), build / place)
        with contextlib.redirect_stdout(io.StringIO()):
            bundle.make_programs(str(SOURCE), str(build), out)
        (build / plugin).unlink()
        with self.assertRaisesRegex(SystemExit, "has no device-cuda.so"):
            bundle.make_programs(str(SOURCE), str(build), out)
        self.there.bundled, self.there.packages = out, str(self.folder)
        self.program("nvidia/cublas/lib/libcublasLt.so.13", "")
        self.assertEqual(stages.configure(self.there), "programs of the bundle, 1 plugins")
        self.assertEqual(stages.targets("build_all", "patchbay")(self.there), "of the bundle")
        self.assertTrue(os.access(self.there.program, os.X_OK))
        self.assertTrue(os.path.exists(stages.plugin_file(self.there, "device-cuda")))
        self.assertTrue(os.path.exists(os.path.join(self.there.libraries[0], "libcublasLt.so.13")))
        moved = os.path.join(self.there.build, "built-in.json")
        self.assertEqual(json.loads(Path(moved).read_text()), {"root": str(SOURCE), "build": str(build)})
        shutil.rmtree(build)
        with contextlib.redirect_stdout(io.StringIO()):
            bundle.unpack_programs(out, str(SOURCE), self.there.work)
        self.assertEqual(os.readlink(build), self.there.build)

    def test_only_what_was_built_follows_ld_library_path(self):
        show = 'echo "<${LD_LIBRARY_PATH-unset}>"\n'
        with self.environment(PATH=f"{self.folder}/bin:/usr/bin:/bin", LD_LIBRARY_PATH="/of/torch"):
            for tool in ("cmake", "ninja", "nvcc"):
                self.program("bin/" + tool, show)
                self.assertEqual(self.there.call(tool, [tool]), "<unset>\n")
            self.patchbay(show)
            self.assertEqual(self.there.call("own", [self.there.program]), "</of/torch>\n")
            self.there.bundled = "bundle"
            self.assertEqual(self.there.call("cmake", ["cmake"]), "<unset>\n")
            self.assertIn("third-party/usr/lib:/of/torch>", self.there.call("own", [self.there.program]))

    def test_the_probe_has_time_and_memory_unless_the_environment_says_how_much(self):
        show = 'echo "$PATCHBAY_PROBE_TIMEOUT_S $PATCHBAY_PROBE_MEMORY_MIB"\n'
        self.program("bin/ninja", show)
        with self.environment(PATH=f"{self.folder}/bin:/usr/bin:/bin"):
            self.assertEqual(self.there.call("ninja", ["ninja"]), "300 0\n")
        with self.environment(PATH=f"{self.folder}/bin:/usr/bin:/bin", PATCHBAY_PROBE_TIMEOUT_S="9"):
            self.assertEqual(self.there.call("ninja", ["ninja"]), "9 0\n")

    def test_a_plugin_that_is_refused_or_finds_no_gpu_fails_its_conformance(self):
        self.patchbay("echo 'FAILED  device.graphs: linear: other bits'; exit 1\n")
        with self.assertRaisesRegex(RuntimeError, "device.graphs: linear: other bits"):
            stages.conformance("device-cuda")(self.there)
        self.patchbay("echo 'device-cuda.so: sound, but not available on this machine: no NVIDIA driver/GPU'\n")
        with self.assertRaisesRegex(RuntimeError, "no NVIDIA driver"):
            stages.conformance("device-cuda")(self.there)
        self.patchbay("echo 'device-cuda.so: ok'\n")
        self.assertEqual(stages.conformance("device-cuda")(self.there), "device-cuda.so: ok")

    def test_benches_run_as_one_would_serve(self):
        cases = [{"batch": 1, "prompt": 512, "prefill": {"tokens_per_second": 1e4}, "decode": {"tokens_per_second": 99},
                  "replayed": 1, "in_flight": 0.5}]
        self.patchbay(f"echo '{json.dumps({'cases': cases})}'\n")
        run = next(s.run for s in stages.STAGES if s.name == "bench_8b")
        self.assertEqual(run(self.there)["summary"],
                         "1 x 512: prefill 10000, decode 99 tokens/s, 100% by a graph, 50% in flight")
        config = (self.folder / "work/bench_8b.yaml").read_text()
        for key in ("cudagraph_mode: FULL_DECODE_ONLY", "async_scheduling: on", "sampler: standard_cuda",
                    "include: " + str(SOURCE) + "/configs/models/llama-3.1-8b.yaml"):
            self.assertIn(key, config)

    def test_benches_are_of_large_batches_long_prompts_and_kernels_alone(self):
        shown = io.StringIO()
        self.there.dry_run = True
        with contextlib.redirect_stdout(shown):
            for stage in stages.STAGES:
                if stage.name.startswith("bench"):
                    stage.run(self.there)
        for part in ("--batch 1,16,64,256", "--prompt 2048,8192", "bench_cuda_kernels"):
            self.assertIn(part, shown.getvalue())

    def says(self, cpu, cuda):
        """A patchbay that gives these outputs, by the configuration."""
        self.patchbay(f"""case "$(cat "$3")" in
*plugin:\\ cuda*) cat {self.folder}/cuda.jsonl;; *) cat {self.folder}/cpu.jsonl;; esac
""")
        for name, outputs in (("cpu", cpu), ("cuda", cuda)):
            (self.folder / (name + ".jsonl")).write_text("".join(json.dumps(o) + "\n" for o in outputs))

    def outputs(self, *tokens):
        """One a prompt: of (token, log-probability, {others: log-probability})."""
        return [{"prompt": i, "token_ids": [t[0] for t in tokens],
                 "logprobs": [{"logprob": p, "top": [[t, p], *map(list, others.items())]} for t, p, others in tokens]}
                for i in range(len(texts.PROMPTS))]

    def test_f32_is_compared_with_f32(self):
        same = self.outputs((5, -1.0, {7: -2.0}), (6, -0.5, {9: -3.0}))
        self.says(same, self.outputs((5, -1.0005, {7: -2.0}), (6, -0.5, {9: -3.0})))
        self.assertIn("16 tokens", texts.agreement(self.there))
        for name in ("cpu", "cuda"):
            config = (self.folder / f"work/agreement-demo-target-{name}.yaml").read_text()
            self.assertIn("dtype: float32", config)
            self.assertIn("kv_cache_dtype: float32", config)
        self.assertIn("activation_dtype: f32", config)
        self.says(same, self.outputs((5, -1.0, {7: -2.0}), (9, -3.0, {6: -0.5})))
        with self.assertRaisesRegex(RuntimeError, "prompt 0: token 1 is 9, expected 6"):
            texts.agreement(self.there)
        self.says(same, self.outputs((5, -1.1, {7: -2.0}), (6, -0.5, {9: -3.0})))
        with self.assertRaisesRegex(RuntimeError, "token 0 is 0.1 more or less likely"):
            texts.agreement(self.there)

    def test_texts_may_part_where_two_tokens_are_equally_likely(self):
        self.says(self.outputs((5, -1.0, {7: -1.0001}), (6, -0.5, {9: -3.0})),
                  self.outputs((7, -1.0, {5: -1.0001}), (8, -0.1, {1: -3.0})))
        self.assertIn("0 tokens", texts.agreement(self.there))

    def test_graphs_that_no_step_replays_prove_nothing(self):
        for name, shares in (("all", (1, 0.9)), ("none", (1, 0))):
            for mode, share in zip(("FULL_DECODE_ONLY", "FULL"), shares):
                (self.folder / f"{name}-{mode}.json").write_text(json.dumps({"cases": [{"replayed": share}]}))
            self.says([], self.outputs((5, -1.0, {})))
            (self.folder / "generate").unlink(missing_ok=True)
            (self.folder / "work/build/bin/patchbay").rename(self.folder / "generate")
            self.patchbay(f"""[ "$1" = generate ] && exec {self.folder}/generate "$@"
case "$(cat "$4")" in
*cudagraph_mode:\ FULL_DECODE_ONLY*) cat {self.folder}/{name}-FULL_DECODE_ONLY.json;;
*cudagraph_mode:\ FULL*) cat {self.folder}/{name}-FULL.json;; esac
""")
            if name == "all":
                self.assertIn("90% of decode steps", texts.graphs(self.there))
            else:
                with self.assertRaisesRegex(RuntimeError, "no step replays a graph .logs/graphs-full-replayed.log"):
                    texts.graphs(self.there)

    def test_bf16_is_near_and_not_the_same(self):
        def story(*logprobs):
            return [{"prompt": 0, "token_ids": [1], "prompt_logprobs": [{"logprob": p, "top": []} for p in logprobs]}]
        self.says(story(-1.0, -2.0, -3.0), story(-1.02, -2.01, -3.0))
        self.assertIn("0.01 apart on average", texts.low_precision(self.there))
        self.assertIn("dtype: bfloat16", (self.folder / "work/bf16-cuda.yaml").read_text())
        for wrong in ((-1.0, -2.0, -3.6), (-1.06, -2.06, -3.06), (-1.0, float("nan"), -3.0), (-1.0, -2.0)):
            self.says(story(-1.0, -2.0, -3.0), story(*wrong))
            with self.assertRaises(RuntimeError):
                texts.low_precision(self.there)


if __name__ == "__main__":
    unittest.main()
