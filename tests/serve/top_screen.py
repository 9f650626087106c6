"""Has tmux show `patchbay top` of a server under load: numbers move, keys swap and set, the terminal is restored.
   top_screen.py PATCHBAY MODEL [FILE]     FILE: a captured screen goes there. 77: there is no tmux here"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PATCHBAY, MODEL = sys.argv[1:3]
CAPTURE = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
if not shutil.which("tmux"):
    print("skipped: tmux is not installed (scripts/install-deps --test)")
    sys.exit(77)


def wait_for(what, condition, shown=lambda: ""):
    """Until condition() gives something true; the test's own time limit is CTest's."""
    for _ in range(600):
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    sys.exit(f"there was no {what} within a minute\n{shown()}")


class Screen:
    """A terminal with a shell in it, by a tmux server of its own."""

    def __init__(self, folder, columns, rows):
        self.tmux = ["tmux", "-u", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self.say("new-session", "-d", "-x", str(columns), "-y", str(rows), "-s", "t", "env", "PS1=ready> ", "sh", "-i")
        wait_for("shell", lambda: "ready>" in self.text(), self.text)

    def say(self, *words):
        return subprocess.run([*self.tmux, *words], check=True, stdout=subprocess.PIPE, text=True).stdout

    def text(self, *flags):
        return self.say("capture-pane", "-p", "-t", "t", *flags)

    def keys(self, *keys):
        self.say("send-keys", "-t", "t", *keys)

    def resize(self, columns, rows):
        self.say("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def cursor_is_shown(self):
        return self.say("display-message", "-p", "-t", "t", "#{cursor_flag} #{alternate_on}").split() == ["1", "0"]

    def wait(self, what, pattern):
        return wait_for(what, lambda: re.search(pattern, self.text()), self.text)

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], check=False, stderr=subprocess.DEVNULL)


class Load:
    """Requests at a server until it is closed."""

    def __init__(self, url, threads):
        self.url, self.stop = url, threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for t in self.threads:
            t.start()

    def run(self):
        body = {"prompt": "Once upon a time there was a cat, a cat, a cat", "max_tokens": 120}
        while not self.stop.is_set():
            request = urllib.request.Request(self.url + "/v1/completions", json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            try:
                urllib.request.urlopen(request, timeout=60).read()
            except OSError:
                return

    def close(self):
        self.stop.set()
        for t in self.threads:
            t.join()


def number(screen, name):
    """The value after a name of the overview."""
    found = re.search(rf"\b{name}\s+([\d.]+)( k)?", screen.text())
    return float(found[1]) * (1000 if found[2] else 1) if found else None


def status(admin):
    out = subprocess.run([PATCHBAY, "status", "--json", "--admin", admin], check=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout)


def in_slot(admin, kind):
    return next(s["plugin"] for s in status(admin)["slots"] if s["kind"] == kind)


def start(screen, admin, *flags):
    screen.keys(shlex.join([PATCHBAY, "top", "--admin", admin, "--interval", "0.3", *flags]), "Enter")
    screen.wait("first screen", r"1 overview")


def check_numbers(screen):
    screen.wait("running requests", r"running +[1-9]")
    screen.wait("output rate", r"output +[1-9][\d.]*( k)?/s")
    screen.wait("latencies", r"first token .*\d ms|first token .*\d s")
    screen.wait("drafts that are accepted", r"drafts accepted")
    screen.wait("graph reasons", r"of passes replayed")
    steps = re.search(r"([\d.]+)( k)? steps", screen.text())[0]
    wait_for("further step", lambda: steps not in screen.text(), screen.text)
    if CAPTURE:
        CAPTURE.write_text(screen.text("-e"))


def check_swap_and_set(screen, admin):
    screen.keys("s")
    screen.wait("choice of slots", r"swap .*scheduler")
    screen.keys("Enter")
    screen.wait("choice of plugins", r"swap scheduler fcfs to .*sjf")
    plugins = re.search(r"swap scheduler fcfs to (.*)", screen.text())[1].split()
    choose(screen, "s", next(p for p in plugins[1:] if p.startswith("s")))  # by letter
    while chosen(screen) != "sjf":
        choose(screen, "Right", plugins[(plugins.index(chosen(screen)) + 1) % len(plugins)])
    screen.keys("Enter")
    screen.wait("line for settings", r"to sjf KEY=VALUE")
    screen.keys("-l", "ageing=3")
    screen.keys("Enter")
    screen.wait("answer", r"swap scheduler fcfs to sjf: (committed \(step \d+, pause |on probation)")  # if idle just then
    assert in_slot(admin, "scheduler") == "sjf"
    screen.wait("plugin in the table", r"scheduler +sjf")
    screen.keys("e")
    screen.wait("choice of slots", r"set .*scheduler")
    screen.keys("Enter")
    screen.wait("line for settings", r"set scheduler KEY=VALUE")
    screen.keys("-l", "agein=7")
    screen.keys("Enter")
    screen.wait("refusal", r"unknown key 'agein'")
    screen.keys("e")
    screen.wait("choice of slots", r"set .*scheduler")
    screen.keys("Enter")
    screen.wait("line for settings", r"set scheduler KEY=VALUE")
    screen.keys("-l", "ageing=7")
    screen.keys("Enter")
    screen.wait("answer", r"set scheduler: ageing=7")
    screen.keys("s")
    screen.wait("choice of slots", r"swap .*scheduler")
    screen.keys("Escape")
    wait_for("closed dialog", lambda: "leave it" not in screen.text(), screen.text)
    screen.keys("2")
    screen.wait("page of plugins", r"Calls of a step")
    screen.wait("calls", r"scheduler +sjf +plan +\d")
    screen.wait("swaps", r"scheduler +1 +0 +0")
    if CAPTURE:
        CAPTURE.with_suffix(".plugins").write_text(screen.text("-e"))
    screen.keys("Tab")
    screen.wait("overview", r"KV pages")


def choose(screen, key, expected):
    screen.keys(key)
    wait_for(f"{expected} to be chosen", lambda: chosen(screen) == expected, lambda: screen.text("-e"))


def chosen(screen):
    """What is shown in reverse on the dialog's line."""
    line = next((l for l in screen.text("-e").splitlines() if "swap " in l and "\x1b[7m" in l), "")
    found = re.search(r"\x1b\[(?:\d+;)*7m([^\x1b]*)", line)
    return found[1] if found else None


def check_sizes(screen):
    for columns, rows in ((40, 12), (12, 3), (5, 1), (200, 60), (100, 30)):
        screen.resize(columns, rows)
        head = "patchbay top"[:columns]
        wait_for(f"screen of {columns} columns", lambda: screen.text().startswith(head), screen.text)
        lines = screen.text("-J").splitlines()  # one that the terminal has wrapped is whole there
        assert all(len(line.rstrip()) <= columns for line in lines), lines
    screen.wait("two columns", r"Requests .*Tokens")


def check_end(screen, begin, *end):
    begin()
    assert not screen.cursor_is_shown()
    for action in end:
        action()
    wait_for("restored terminal", screen.cursor_is_shown, screen.text)
    screen.wait("prompt", r"(?m)^ready>\s*\Z")
    screen.keys("echo code $?", "Enter")
    screen.wait("exit code 0", r"(?m)^code 0$")
    screen.keys("clear", "Enter")
    wait_for("clean shell", lambda: "code" not in screen.text(), screen.text)
    screen.wait("prompt", r"(?m)^ready>\s*\Z")
    screen.keys("stty -a | grep -c ' echo '", "Enter")  # echo and line editing are back
    screen.wait("echo", r"(?m)^1$")
    screen.keys("clear", "Enter")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pb-"))
    admin = str(folder / "admin.sock")
    server = subprocess.Popen([PATCHBAY, "serve", "--model", MODEL, "--port", "0", "--admin", admin, "--threads", "1",
                               "--proposer", "ngram", "--num-speculative-tokens", "3", "--num-blocks", "1024"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    url = re.search(r"http://[^ ]+", next(line for line in server.stderr if "serving" in line))[0].strip()
    threading.Thread(target=server.stderr.read, daemon=True).start()
    os.environ.update(LC_ALL="C.UTF-8", TERM="screen-256color")
    os.environ.pop("NO_COLOR", None)
    os.environ.pop("TMUX", None)
    screen, load = Screen(folder, 100, 32), Load(url, 4)
    try:
        start(screen, admin)
        check_numbers(screen)
        check_swap_and_set(screen, admin)
        check_sizes(screen)
        check_end(screen, lambda: None, lambda: screen.keys("q"))
        check_end(screen, lambda: start(screen, admin), lambda: screen.keys("C-c"))
        start(screen, admin)
        load.close()
        server.send_signal(signal.SIGTERM)
        server.wait()
        screen.wait("word that the engine is gone", r"no engine listens")
        check_end(screen, lambda: None, lambda: screen.keys("q"))
    finally:
        load.stop.set()
        screen.close()
        server.kill()
        server.wait()
        shutil.rmtree(folder)
    print("shown, swapped, set, restored")


main()
