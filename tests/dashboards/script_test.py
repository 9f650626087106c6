"""python3 script_test.py PATCHBAY SOURCE: scripts/dashboards has a real Prometheus scrape a server, gives Grafana its
dashboards, and leaves nothing when it ends. Grafana is a script that says how it was called: none may be installed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stand import Running, free_port, json_of, query

GRAFANA = """#!/bin/sh
echo "$@" > {called}
cp "$GF_PATHS_PROVISIONING"/*/*.yaml {folder}
ls "$PATCHBAY_DASHBOARDS"/*.json >> {called}
echo "$PATCHBAY_PROMETHEUS" >> {called}
exec sleep 600
"""


def wait_until(what, holds, seconds: float = 60) -> None:
    begin = time.monotonic()
    while not holds():
        assert time.monotonic() < begin + seconds, f"it takes too long: {what}"
        time.sleep(0.1)


def answers(url: str) -> bool:
    try:
        return json_of(url + "/api/v1/status/runtimeinfo")["status"] == "success"
    except OSError:
        return False


def main() -> None:
    patchbay, source = sys.argv[1], Path(sys.argv[2])
    if not shutil.which("prometheus"):
        print("there is no prometheus (scripts/install-deps --test)")
        sys.exit(77)
    script = source / "scripts/dashboards"
    refused = subprocess.run([script, "--target", "here"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "expected HOST:PORT" in refused.stderr, refused
    running, folder = Running(), Path(tempfile.mkdtemp(prefix="pb-"))
    try:
        line = running.start(patchbay, "serve", "--model", str(source / "models/demo-draft"), "--port", "0", "--threads",
                             "1", "--num-blocks", "64", "--admin", "none", ready="serving")
        target = re.search(r"http://(\S+)", line).group(1)
        called = folder / "called"
        (folder / "bin").mkdir()
        grafana = folder / "bin/grafana"
        grafana.write_text(GRAFANA.format(called=called, folder=folder))
        grafana.chmod(0o755)
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        process = subprocess.Popen([script, "--target", target, "--prometheus-port", str(port)], text=True,
                                   stdout=subprocess.PIPE, env=os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}",
                                                                            "TMPDIR": str(folder)})
        wait_until("Prometheus", lambda: answers(url))
        wait_until("a scrape", lambda: any(s["value"][1] == "1" for s in query(url, f'up{{instance="{target}"}}')))
        rules = json_of(url + "/api/v1/rules")["data"]["groups"]
        assert sum(len(group["rules"]) for group in rules) > 20, rules
        wait_until("Grafana", lambda: called.exists() and url in called.read_text())
        boards = {Path(line).name for line in called.read_text().splitlines() if line.endswith(".json")}
        assert boards == {file.name for file in (source / "metrics/grafana").glob("*.json")}, boards
        assert called.read_text().startswith("server --homepath "), called.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        said = process.stdout.read()
        assert url in said and "Grafana: http://127.0.0.1:3000" in said, said
        wait_until("the end of Prometheus", lambda: not answers(url))
        left = [p.name for p in folder.iterdir() if p.name.startswith("tmp.")]
        assert not left, left
        print("scripts/dashboards: as expected")
    finally:
        running.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
