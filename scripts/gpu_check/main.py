"""Runs the stages of scripts/gpu-check within a time, keeps what they found, and takes up what is left."""
import argparse
import glob
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time

from gpu_check import bundle
from gpu_check.context import Context, Stopped
from gpu_check.stages import STAGES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAX_TRIES = 2  # calls that may cut a stage off which does not go on where it was


def arguments(about):
    """Folders are the caller's, wherever the stages run; defaults are of this tree."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", metavar="DIR", type=os.path.abspath,
                        help="make the bundle of third-party files, and stop")
    parser.add_argument("--programs", action="store_true",
                        help="of --bundle: the programs of a build with the CUDA device, so that nothing is built there")
    parser.add_argument("--build", metavar="DIR", type=os.path.abspath, default=os.path.join(ROOT, "build/release"),
                        help="a finished build, for --bundle (default: build/release)")
    parser.add_argument("--with", metavar="DIR", dest="bundled", type=os.path.abspath,
                        help="use this bundle (default: the system's packages)")
    parser.add_argument("--work", metavar="DIR", type=os.path.abspath, default=os.path.join(ROOT, "build/gpu-check"),
                        help="where it builds, and keeps what has passed (default: build/gpu-check)")
    parser.add_argument("--out", metavar="DIR", type=os.path.abspath, default=os.environ.get("OUT") or None,
                        help="where results.json, results.md and logs.tar.gz go after every stage (default: the "
                             "environment's OUT, else --work)")
    parser.add_argument("--minutes", type=float, default=8.5, help="that a call takes at most")
    parser.add_argument("--only", metavar="STAGE", action="append",
                        help="run this stage, passed or not, whatever became of those that it needs")
    parser.add_argument("--fresh", action="store_true", help="forget what has passed")
    parser.add_argument("--dry-run", action="store_true", help="print what would run")
    parser.add_argument("--packages", metavar="DIR", type=os.path.abspath,
                        help="Python packages with nvidia/ in it: cuBLAS, NCCL")
    return parser.parse_args()


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"stages": {}}


def digest_of(folder, *patterns):
    """Of the files, by name and content."""
    digest = hashlib.sha256()
    for path in sorted({p for pattern in patterns for p in glob.glob(os.path.join(glob.escape(folder), pattern))}):
        digest.update(os.path.basename(path).encode() + b"\0")
        with open(path, "rb") as file:
            for part in iter(lambda: file.read(1 << 20), b""):
                digest.update(part)
    return digest.hexdigest()


def of_this_bundle(results, bundled):
    """What is kept, if the same bundle gave it: what other programs passed says nothing of these."""
    found = digest_of(bundled, "*")
    if results.get("bundle", found) != found:
        print("gpu-check: another bundle than the last time: all stages run again")
        results = {"stages": {}}
    return {**results, "bundle": found}


def table(results):
    lines = ["| stage | state | seconds | what it found |", "|---|---|---|---|"]
    for stage in STAGES:
        r = results["stages"].get(stage.name, {"state": "not run"})
        found = r.get("found", "")
        found = str(found.get("summary", found) if isinstance(found, dict) else found).replace("\n", " ").replace("|", "/")
        lines.append(f"| {stage.name} | {r['state']} | {r.get('seconds', '')} | {found} |")
    return "\n".join(lines) + "\n"


def replace(path, write):
    """Writes a file under another name first: a call may be killed at any time."""
    write(path + ".new")
    os.replace(path + ".new", path)


def write_text(text):
    def write(path):
        with open(path, "w") as file:
            file.write(text)
    return write


class Check:
    """One call: the stages that it runs, and what is kept of them."""

    def __init__(self, args, context, out, results):
        self.args, self.context, self.out, self.results = args, context, out, results
        self.end = context.deadline
        self.left = []  # stages that another call is to run

    def state(self, name):
        return self.results["stages"].get(name, {}).get("state", "not run")

    def keep(self, stage, state, found, seconds=0.0, tries=0):
        self.results["stages"][stage.name] = {"state": state, "seconds": round(seconds, 1), "found": found}
        if tries:
            self.results["stages"][stage.name]["tries"] = tries
        if isinstance(found, dict):
            self.results.setdefault("measured", {})[stage.name] = found
        self.save()

    def save(self):
        """All that is known, where the next call and where the caller look for it."""
        if self.args.dry_run:
            return
        logs = os.path.join(self.context.work, "logs")

        def pack(path):
            with tarfile.open(path, "w:gz") as tar:
                if os.path.isdir(logs):
                    tar.add(logs, arcname="logs")

        for folder in dict.fromkeys((self.context.work, self.out)):
            os.makedirs(folder, exist_ok=True)
            replace(os.path.join(folder, "results.json"), write_text(json.dumps(self.results, indent=1)))
            replace(os.path.join(folder, "results.md"), write_text(table(self.results)))
        replace(os.path.join(self.out, "logs.tar.gz"), pack)

    def order(self):
        """What has not run comes first, then what failed in an earlier call: a failure takes no other stage's time."""
        if self.args.only:
            return [s for s in STAGES if s.name in self.args.only]
        wanted = [s for s in STAGES if s.always or self.args.dry_run or self.state(s.name) != "passed"]
        failed = [s for s in wanted if self.state(s.name) == "failed" and not s.always and not self.args.dry_run]
        return [s for s in wanted if s not in failed] + failed

    def may_begin(self, stage):
        if self.args.dry_run:
            return True
        left = self.end - time.monotonic()
        if not self.args.only:
            missing = [n for n in stage.needs if self.state(n) != "passed"]
            if any(n in self.left for n in missing):
                self.left.append(stage.name)
                return False
            if missing:
                self.keep(stage, "waits", f"needs {', '.join(missing)}")
                return False
        if left < stage.least:
            print(f"gpu-check: {left:.0f} s are left, {stage.name} wants {stage.least}")
            self.left.append(stage.name)
            return False
        return True

    def cut_off(self, stage, before, seconds):
        """What becomes of a stage whose time is up, or whose call a signal ends."""
        tries = before.get("tries", 0) + 1
        if stage.most and time.monotonic() < self.end and not self.context.stopped:
            return self.keep(stage, "failed", f"is not done after {stage.most:.0f} s", seconds)
        if stage.most and tries >= MAX_TRIES:
            return self.keep(stage, "failed", f"was cut off by {tries} calls; more --minutes?", seconds)
        self.left.append(stage.name)
        why = f"ended by {self.context.stopped}" if self.context.stopped else "out of time"
        return self.keep(stage, "unfinished", why, seconds, tries)

    def run(self, stage):
        if not self.may_begin(stage):
            return None
        print(f"== {stage.name}", flush=True)
        before = self.results["stages"].get(stage.name, {})
        if before.get("state") == "running":  # the call was killed in it
            before["tries"] = before.get("tries", 0) + 1
            if stage.most and before["tries"] >= MAX_TRIES:
                return self.keep(stage, "failed", f"{before['tries']} calls were killed in it")
        start = time.monotonic()
        self.context.deadline = min(self.end, start + stage.most) if stage.most else self.end
        if self.args.dry_run:
            return stage.run(self.context)
        self.keep(stage, "running", "", tries=before.get("tries", 0))
        try:
            self.keep(stage, "passed", stage.run(self.context), time.monotonic() - start)
            self.forget_what_other_programs_passed(stage)
        except (subprocess.TimeoutExpired, Stopped):
            self.cut_off(stage, before, time.monotonic() - start)
        except (RuntimeError, OSError, ValueError, KeyError, IndexError, AttributeError) as error:
            self.keep(stage, "failed", str(error) or type(error).__name__, time.monotonic() - start)
        r = self.results["stages"][stage.name]
        return print(f"   {r['state']}: {r['found']}", flush=True)

    def forget_what_other_programs_passed(self, build):
        """A bundle's are compared as a whole, once."""
        if not build.makes or self.context.built_elsewhere:
            return
        found = digest_of(self.context.build, *build.makes)
        before = self.results.setdefault("built", {}).get(build.name, found)
        self.results["built"][build.name] = found
        passed = [s.name for s in STAGES if build.name in s.needs and not s.always and s.name in self.results["stages"]]
        if before != found and passed:
            print(f"gpu-check: {build.name} made other programs than the last time: {', '.join(passed)} run again")
            for name in passed:
                del self.results["stages"][name]
                self.results.get("measured", {}).pop(name, None)
        self.save()

    def run_all(self):
        """Until a signal comes: what has not begun by then is left to another call. A build may add to what is to run."""
        begun = set()
        while stage := next((s for s in self.order() if s.name not in begun), None):
            begun.add(stage.name)
            if self.context.stopped:
                self.left.append(stage.name)
            else:
                self.run(stage)


def main(about):
    args = arguments(about)
    os.chdir(ROOT)
    if args.bundle:
        make = bundle.make_programs if args.programs else bundle.make
        make(ROOT, args.build, args.bundle)
        return 0
    unknown = set(args.only or ()) - {s.name for s in STAGES}
    if unknown:
        print(f"gpu-check: no stage {', '.join(sorted(unknown))}; there are {', '.join(s.name for s in STAGES)}")
        return 2
    results = {"stages": {}} if args.fresh else load(os.path.join(args.work, "results.json"))
    if args.bundled and not args.dry_run:
        results = of_this_bundle(results, args.bundled)
    context = Context(ROOT, args.work, args.bundled, args.packages, time.monotonic() + 60 * args.minutes, args.dry_run)
    check = Check(args, context, args.out or args.work, results)
    with context.stopped_by_signals():
        check.run_all()
    if args.dry_run:
        return 0
    check.save()
    sys.stdout.write(table(results))
    if check.left:
        print(f"gpu-check: call again for {', '.join(check.left)}")
    if context.stopped:
        return 128 + signal.Signals[context.stopped]  # as a shell says it of a program that a signal ended
    if check.left:
        return 3
    return 0 if all(r["state"] == "passed" for r in results["stages"].values()) else 1
