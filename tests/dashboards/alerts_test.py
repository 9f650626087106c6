"""python3 alerts_test.py PATCHBAY SOURCE BUILD: for each alert of metrics/prometheus, brings about in a running engine what
it warns of, and has a real Prometheus show it pending and then firing. Only the times for which alerts wait are shortened
(stand.without_waiting). A server without faults must have none of them."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
from pathlib import Path

from stand import Running, json_of, query, start_prometheus, without_waiting

DEADLINE_S = 240  # after which an alert that does not fire fails the test
OF_TIME = {"PatchbayFirstTokensLate", "PatchbayOutputTokensLate", "PatchbayQueueWaits"}  # a busy machine is slow


class Clients:
    """Requests at a server, one after another from each thread, until the end."""

    def __init__(self, url: str, threads: int, **body) -> None:
        self.url, self.body, self.ended = url, body, threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self) -> None:
        while not self.ended.is_set():
            try:
                json_of(self.url + "/v1/completions", self.body)
            except urllib.error.HTTPError:
                self.ended.wait(0.1)  # it is rejected: at 10 a second, not as fast as it can
            except OSError:
                return  # the server has ended

    def end(self) -> None:
        self.ended.set()


class Stand:
    """Servers, each with a fault of its own, and one that is healthy until a swap is rolled back."""

    def __init__(self, patchbay: str, source: Path, build: Path, folder: Path, running: Running) -> None:
        self.patchbay, self.folder, self.running = patchbay, folder, running
        plugins = ["--plugin-dir", str(build / "tests/swap_plugins")]
        model = ["--model", str(source / "models/demo-draft"), "--threads", "1"]
        self.healthy = self.serve("healthy", *model, *plugins, "--num-blocks", "2048")
        # 64 pages of 16 tokens for up to 24 requests of 400 tokens
        self.overloaded = self.serve("overloaded", *model, "--num-blocks", "64", "--max-requests", "24")
        faulty = self.engine(source, "faulty", scheduler={"plugin": "faulty", "fault": "late", "blocks": 96},
                             proposer={"plugin": "faulty", "fault": "throws", "room": 3})
        self.faulty = self.serve("faulty", "--config", str(faulty), *plugins)
        self.restarted = self.serve("restarted", "--supervise", *model, *plugins, "--num-blocks", "512")
        self.gone = self.serve("gone", *model, "--num-blocks", "64")
        stalled = self.engine(source, "stalled", scheduler={"plugin": "faulty", "fault": "hangs", "blocks": 96, "at": 2})
        self.stalled = self.serve("stalled", "--config", str(stalled), *plugins)

    def engine(self, source: Path, name: str, **policies: dict) -> Path:
        file = self.folder / f"{name}.yaml"
        file.write_text(json.dumps({
            "model": {"path": str(source / "models/demo-draft")},
            "engine": {"num_blocks": 96, "num_speculative_tokens": 3 if "proposer" in policies else 0, "threads": 1,
                       "max_num_seqs": 1},
        } | policies))
        return file

    def serve(self, name: str, *flags: str) -> str:
        line = self.running.start(self.patchbay, "serve", *flags, "--port", "0",
                                  "--admin", str(self.folder / f"{name}.sock"), ready="serving")
        return re.search(r"http://\S+", line).group()

    def fail_a_swap(self) -> None:
        done = subprocess.run([self.patchbay, "swap", "scheduler", "faulty", "fault=over_budget", "blocks=2048",
                               "--admin", str(self.folder / "healthy.sock")], capture_output=True, text=True, check=False)
        # on probation: no request was under way just then, so its first plan, which fails it, is still to come
        assert "rolled back" in done.stderr or "on probation" in done.stdout, done

    def end_a_server(self) -> None:
        done = subprocess.run([self.patchbay, "swap", "scheduler", "faulty", "fault=crashes", "blocks=512",
                               "--admin", str(self.folder / "restarted.sock")], capture_output=True, text=True, check=False)
        assert "has ended by a fault" in done.stderr, done


def expected(stand: Stand) -> dict[str, str]:
    """Where each alert must fire."""
    return {"PatchbayDown": stand.gone, "PatchbayQueueWaits": stand.faulty, "PatchbayPagesFull": stand.overloaded,
            "PatchbayPreempts": stand.overloaded, "PatchbayFirstTokensLate": stand.faulty,
            "PatchbayRejects": stand.overloaded, "PatchbayOutputTokensLate": stand.faulty,
            "PatchbayPluginFaults": stand.faulty, "PatchbaySwapRolledBack": stand.healthy,
            "PatchbayRestarted": stand.restarted, "PatchbayStalled": stand.stalled}


def rules_of(prometheus: str) -> dict[str, dict]:
    groups = json_of(prometheus + "/api/v1/rules?type=alert")["data"]["groups"]
    return {rule["name"]: rule for group in groups for rule in group["rules"]}


def host_of(url: str) -> str:
    return urllib.parse.urlparse(url).netloc


def selector(name: str, url: str, state: str) -> str:
    return f'ALERTS{{alertname="{name}", instance="{host_of(url)}", alertstate="{state}"}}'


def wait_for_scrapes(prometheus: str, urls: list[str]) -> None:
    begin = time.monotonic()
    while len(query(prometheus, "patchbay_steps_total offset 2s")) < len(urls):
        assert time.monotonic() < begin + DEADLINE_S, "the servers are not scraped"
        time.sleep(0.2)


def wait_for_firing(prometheus: str, where: dict[str, str]) -> list[str]:
    """Those that did not fire."""
    begin, missing = time.monotonic(), dict(where)
    while missing and time.monotonic() < begin + DEADLINE_S:
        time.sleep(0.5)
        missing = {name: url for name, url in missing.items() if not query(prometheus, selector(name, url, "firing"))}
    return sorted(missing)


def first_time(prometheus: str, name: str, url: str, state: str) -> float:
    """When the alert was first in this state; infinity: it never was."""
    now = time.time()
    words = urllib.parse.urlencode({"query": selector(name, url, state), "start": now - 600, "end": now, "step": 1})
    series = json_of(prometheus + "/api/v1/query_range?" + words)["data"]["result"]
    return min((float(value[0]) for s in series for value in s["values"]), default=float("inf"))


def check_pending_before_firing(prometheus: str, where: dict[str, str], rules: dict[str, dict]) -> None:
    for name, url in where.items():
        pending, firing = (first_time(prometheus, name, url, state) for state in ("pending", "firing"))
        if rules[name]["duration"] > 0:
            assert pending < firing, (name, "was not pending before it fired")


def check_others(prometheus: str, where: dict[str, str]) -> None:
    """No alert fires where nothing was done for it. A machine that is busy may be slow everywhere."""
    for name, url in where.items():
        for found in query(prometheus, f'ALERTS{{alertname="{name}", alertstate="firing"}}'):
            elsewhere = found["metric"]["instance"] != host_of(url)
            assert not elsewhere or name in OF_TIME or name == "PatchbayPagesFull", found["metric"]


def main() -> None:
    patchbay, source, build = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if not shutil.which("prometheus"):
        print("there is no prometheus (scripts/install-deps --test)")
        sys.exit(77)
    running, clients = Running(), []
    folder = Path(tempfile.mkdtemp(prefix="pb-"))
    try:
        stand = Stand(patchbay, source, build, folder, running)
        urls = [stand.healthy, stand.overloaded, stand.faulty, stand.restarted, stand.gone, stand.stalled]
        prometheus = start_prometheus(running, source, folder, urls, without_waiting)
        rules, where = rules_of(prometheus), expected(stand)
        assert set(rules) == set(where), "an alert that this test does not bring about"
        for rule in rules.values():
            assert rule["annotations"].get("runbook"), rule["name"]
            assert rule["duration"] in (0, 2), (rule["name"], "waits as long as in production")
        wait_for_scrapes(prometheus, urls)
        early = query(prometheus, 'ALERTS{alertstate="firing"}')
        assert not early, f"alerts before anything was done: {early}"
        prompt = {"prompt": "the cat and the dog and the cat and the dog and the"}
        clients = [Clients(stand.healthy, 1, max_tokens=5, **prompt),
                   Clients(stand.overloaded, 32, max_tokens=400, ignore_eos=True, **prompt),
                   # one at a time, of 1.2 s or more: the last of them waits for 20 s
                   Clients(stand.faulty, 16, max_tokens=20, ignore_eos=True, **prompt),
                   Clients(stand.stalled, 1, max_tokens=20, ignore_eos=True, **prompt)]
        stand.fail_a_swap()
        stand.end_a_server()
        running.all[4].kill()
        missing = wait_for_firing(prometheus, where)
        assert not missing, f"did not fire: {missing}"
        check_pending_before_firing(prometheus, where, rules)
        check_others(prometheus, where)
        print(f"all {len(where)} alerts fire")
    finally:
        for c in clients:
            c.end()
        running.all[5].kill()  # its engine does not stop
        running.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
