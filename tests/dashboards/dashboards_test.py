"""python3 dashboards_test.py PATCHBAY SOURCE BUILD: has a Prometheus scrape a server of the demo model under load and an
experiment, both with swaps or variants under way, and asks it every query of every rule, alert and panel. Each must
return a number. Of an alert the compared value is asked for, since its whole expression is empty while all is well."""

import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
from pathlib import Path

from stand import Running, json_of, start_prometheus
from stand import query as ask

DEADLINE_S = 200  # after which a query that has returned nothing yet fails the test
COMPARED = ("variant", "instance")
VARIABLES = {"$job": ".*", "$instance": ".*", "$__rate_interval": "10s"}


def load(url: str, ended: threading.Event, number: int, faults: list[str]) -> None:
    request = {"prompt": "the cat and the dog and the cat and the dog and the", "max_tokens": 20 + number, "seed": number}
    while not ended.is_set():
        try:
            json_of(url + "/v1/completions", request)
        except urllib.error.HTTPError as error:
            if error.code != 429:  # --max-requests is less than there are clients
                faults.append(str(error))
        except OSError as error:
            if not ended.is_set():
                faults.append(str(error))
                return


def panel_queries(source: Path) -> dict[str, str]:
    out = {}
    for file in sorted((source / "metrics/grafana").glob("*.json")):
        dashboard = json.loads(file.read_text())
        for panel in dashboard["panels"]:
            assert panel["targets"], (file, panel["title"])
            for target in panel["targets"]:
                for by in COMPARED if "$by" in target["expr"] else ("",):
                    query = target["expr"].replace("$by", by)
                    for name, value in VARIABLES.items():
                        query = query.replace(name, value)
                    assert "$" not in query, query
                    out[f"{file.name}: {panel['title']}: {target['refId']} {by}"] = query
    return out


def rule_queries(prometheus: str) -> dict[str, str]:
    out = {}
    for group in json_of(prometheus + "/api/v1/rules")["data"]["groups"]:
        for rule in group["rules"]:
            compared = re.fullmatch(r"(.*) (<|>) [0-9.]+", rule["query"])
            assert (rule["type"] == "alerting") == bool(compared), rule["query"]
            out[f"{rule['type']}: {rule['name']}"] = compared[1] if compared else rule["query"]
    return out


def has_number(prometheus: str, query: str) -> bool:
    return any(math.isfinite(float(sample["value"][1])) for sample in ask(prometheus, query))


def check_files(source: Path) -> None:
    rules = source / "metrics/prometheus"
    for command in (["check", "config", "prometheus.yaml"], ["check", "rules", "rules.yaml", "alerts.yaml"],
                    ["test", "rules", "alerts_test.yaml"]):
        subprocess.run(["promtool", *command], cwd=rules, check=True, stdout=subprocess.DEVNULL)
    everything = "".join(file.read_text() for file in (source / "metrics").rglob("*") if file.suffix in (".json", ".yaml"))
    assert not re.search(r"\bvector\(", everything), "a query that makes up its own data"


def start_server(running: Running, patchbay: str, source: Path, build: Path, folder: Path) -> str:
    line = running.start(patchbay, "serve", "--supervise", "--model", str(source / "models/demo-draft"), "--port", "0",
                         "--admin", str(folder / "admin.sock"), "--plugin-dir", str(build / "tests/swap_plugins"),
                         "--proposer", "ngram", "--num-speculative-tokens", "3", "--num-blocks", "2048",
                         "--threads", "1", "--max-requests", "4", ready="serving")
    return re.search(r"http://\S+", line).group()


def start_drafting(running: Running, patchbay: str, source: Path) -> str:
    """With a draft model, and too few pages, which are offloaded."""
    line = running.start(patchbay, "serve", "--model", str(source / "models/demo-target"), "--port", "0", "--admin", "none",
                         "--proposer", "draft_model", "--draft-model", str(source / "models/demo-draft"),
                         "--num-speculative-tokens", "3", "--num-blocks", "96", "--threads", "1", "--max-requests", "8",
                         "--preemption-mode", "swap", "--swap-space", "0.1", ready="serving")
    return re.search(r"http://\S+", line).group()


def start_experiment(running: Running, patchbay: str, source: Path, folder: Path) -> str:
    file = folder / "experiment.yaml"
    file.write_text(f"include: {source}/configs/models/tiny.yaml\nengine: {{threads: 1}}\nvariants: {{fcfs: {{}}, "
                    "sjf: {scheduler: sjf}}\nrepeats: 10\nworkload:\n  requests: 20000\n"
                    "  prompts: {synthetic: {tokens: 20}}\n  output_tokens: 20\n"
                    "  arrivals: {deterministic: {rate: 100}}\n")
    line = running.start(patchbay, "run", str(file), "--results", str(folder / "results"), "--no-report",
                         "--metrics-port", "0", ready="http://")
    return re.search(r"http://[^/]+", line).group()


def swap(patchbay: str, folder: Path, *words: str) -> None:
    subprocess.run([patchbay, "swap", "scheduler", *words, "--admin", str(folder / "admin.sock")],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # some are refused


def main() -> None:
    patchbay, source, build = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("there is no prometheus and promtool (scripts/install-deps --test)")
        sys.exit(77)
    check_files(source)
    running, ended = Running(), threading.Event()
    clients, faults = [], []
    folder = Path(tempfile.mkdtemp(prefix="pb-"))
    try:
        server = start_server(running, patchbay, source, build, folder)
        drafting = start_drafting(running, patchbay, source)
        experiment = start_experiment(running, patchbay, source, folder)
        prometheus = start_prometheus(running, source, folder, [server, drafting, experiment])
        clients = [threading.Thread(target=load, args=(url, ended, i, faults))
                   for url, count in ((server, 6), (drafting, 2)) for i in range(count)]
        for client in clients:
            client.start()
        missing = panel_queries(source) | rule_queries(prometheus)
        asked = len(missing)
        assert asked > 110, "queries are not found any more"
        begin = time.monotonic()
        while missing and time.monotonic() < begin + DEADLINE_S:
            swap(patchbay, folder, "sjf")
            swap(patchbay, folder, "fcfs")
            swap(patchbay, folder, "faulty", "fault=over_budget", "blocks=2048")
            missing = {name: query for name, query in missing.items() if not has_number(prometheus, query)}
        assert all(process.poll() is None for process in running.all), "one of the programs has ended"
        assert not faults, faults[:3]
        for name, query in missing.items():
            print(f"returns no number: {name}: {query}")
        print(f"{asked - len(missing)} of {asked} queries return numbers, after {time.monotonic() - begin:.0f} s")
        sys.exit(1 if missing else 0)
    finally:
        ended.set()
        running.end()
        for client in clients:
            client.join()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
