"""The stages of scripts/gpu-check, and what runs them within a time."""
import argparse
import json
import os
import subprocess
import sys
import time

from gpu_check import bundle
from gpu_check.stages import STAGES, Context


def arguments(about):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", metavar="DIR", help="make the bundle of third-party files, and stop")
    parser.add_argument("--build", metavar="DIR", default="build/release", help="a finished build, for --bundle")
    parser.add_argument("--with", metavar="DIR", dest="bundled", help="use this bundle (default: the system's packages)")
    parser.add_argument("--out", metavar="DIR", default="build/gpu-check", help="where all of it goes")
    parser.add_argument("--minutes", type=float, default=8.5, help="that a call takes at most")
    parser.add_argument("--only", metavar="STAGE", action="append", help="run these stages, passed or not")
    parser.add_argument("--fresh", action="store_true", help="forget what has passed")
    parser.add_argument("--dry-run", action="store_true", help="print what would run")
    parser.add_argument("--packages", metavar="DIR", help="Python packages with nvidia/ in it: cuBLAS, NCCL")
    return parser.parse_args()


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"stages": {}}


def table(results):
    lines = ["| stage | state | seconds | what it found |", "|---|---|---|---|"]
    for stage in STAGES:
        r = results["stages"].get(stage.name, {"state": "not run"})
        found = str(r.get("found", "")).replace("\n", " ").replace("|", "/")
        lines.append(f"| {stage.name} | {r['state']} | {r.get('seconds', '')} | {found} |")
    return "\n".join(lines) + "\n"


def save(out, results):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "results.json.new"), "w") as file:
        json.dump(results, file, indent=1)
    os.replace(os.path.join(out, "results.json.new"), os.path.join(out, "results.json"))
    with open(os.path.join(out, "results.md"), "w") as file:
        file.write(table(results))


def main(about):
    args = arguments(about)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    os.chdir(root)
    if args.bundle:
        bundle.make(root, args.build, args.bundle)
        return 0
    deadline = time.monotonic() + 60 * args.minutes
    out = os.path.abspath(args.out)
    results = {"stages": {}} if args.fresh else load(os.path.join(out, "results.json"))
    context = Context(root, out, args.bundled and os.path.abspath(args.bundled), args.packages, deadline, args.dry_run)
    if args.only:
        unknown = set(args.only) - {s.name for s in STAGES}
        if unknown:
            print(f"gpu-check: no stage {', '.join(sorted(unknown))}; there are {', '.join(s.name for s in STAGES)}")
            return 2
    failed = set()
    for stage in STAGES:
        if args.only and stage.name not in args.only:
            continue
        before = results["stages"].get(stage.name, {})
        if before.get("state") == "passed" and not args.only and not stage.always:
            continue
        missing = [n for n in stage.needs if n in failed or
                   (results["stages"].get(n, {}).get("state") != "passed" and not args.dry_run)]
        if missing:
            results["stages"][stage.name] = {"state": "waits", "found": f"needs {', '.join(missing)}"}
            failed.add(stage.name)
            continue
        left = deadline - time.monotonic()
        if left < stage.least and not args.dry_run:
            print(f"gpu-check: {left:.0f} s are left, {stage.name} wants {stage.least}: call again")
            save(out, results)
            return 3
        print(f"== {stage.name}", flush=True)
        start = time.monotonic()
        try:
            found, state = stage.run(context), "passed"
        except subprocess.TimeoutExpired:
            found, state = "out of time", "unfinished"
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            found, state = str(error), "failed"
        if args.dry_run:
            continue
        results["stages"][stage.name] = {"state": state, "seconds": round(time.monotonic() - start, 1), "found": found}
        if isinstance(found, dict):
            results.setdefault("measured", {})[stage.name] = found
        save(out, results)
        print(f"   {state}: {found}", flush=True)
        if state == "unfinished":
            print("gpu-check: call again to go on")
            return 3
        if state == "failed":
            failed.add(stage.name)
    if args.dry_run:
        return 0
    save(out, results)
    sys.stdout.write(table(results))
    return 1 if any(r["state"] == "failed" for r in results["stages"].values()) else 0
