"""A test stand: programs under test, and a real Prometheus that scrapes them with the rules of metrics/prometheus."""

import json
import re
import shutil
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
from pathlib import Path


def json_of(url: str, data: dict | None = None) -> dict:
    with urllib.request.urlopen(url, None if data is None else json.dumps(data).encode(), timeout=300) as answer:
        return json.load(answer)


def first_line_with(stream, text: str) -> str:
    for line in stream:
        if text in line:
            threading.Thread(target=lambda: [None for _ in stream], daemon=True).start()  # so that it never fills
            return line
    raise SystemExit(f"no line with {text!r}")


class Running:
    """Programs that end with the test."""

    def __init__(self) -> None:
        self.all: list[subprocess.Popen] = []

    def start(self, *command: str, ready: str) -> str:
        self.all.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        return first_line_with(self.all[-1].stderr, ready)

    def end(self) -> None:
        for process in self.all:
            process.terminate()
        for process in self.all:
            process.wait()


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def without_waiting(rules: str) -> str:
    """Alerts that fire after two seconds of what they are about, in place of minutes. Their expressions stay as they
    are, with the windows of their rates: of those Prometheus takes what there is."""
    return re.sub(r"(?m)^( +for:) \d+m$", r"\1 2s", rules)


def start_prometheus(running: Running, source: Path, folder: Path, targets: list[str], alerts=lambda rules: rules) -> str:
    """alerts: what becomes of alerts.yaml. Scrapes and evaluates each second."""
    shutil.copytree(source / "metrics/prometheus", folder / "prometheus")
    config = folder / "prometheus/prometheus.yaml"
    text = config.read_text()
    for found, needed in (('"127.0.0.1:8000"', ", ".join(json.dumps(t.removeprefix("http://")) for t in targets)),
                          ("_interval: 5s", "_interval: 1s")):
        assert found in text
        text = text.replace(found, needed)
    config.write_text(text)
    file = folder / "prometheus/alerts.yaml"
    file.write_text(alerts(file.read_text()))
    port = free_port()
    running.start("prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
                  f"--web.listen-address=127.0.0.1:{port}", ready="Server is ready")
    return f"http://127.0.0.1:{port}"


def query(prometheus: str, text: str) -> list[dict]:
    """The result of an instant query."""
    return json_of(prometheus + "/api/v1/query?" + urllib.parse.urlencode({"query": text}))["data"]["result"]
