#!/usr/bin/env python3
"""Has a browser show /dashboard of a server under load, and swap the scheduler with it.
   dashboard_page.py PATCHBAY MODEL [SCREENSHOT]     77: there is no chromium and chromedriver here"""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

PATCHBAY, MODEL = sys.argv[1:3]
SCREENSHOT = sys.argv[3] if len(sys.argv) > 3 else None
TOKEN = "a-token-of-more-than-16-characters"
DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
if not DRIVER or not BROWSER:
    print("skipped: chromium and chromium-driver are not installed (scripts/install-deps --nightly)")
    sys.exit(77)


def ask(url, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def wait_for(what, condition):
    """Until condition() gives something true; the test's own time limit is CTest's."""
    for _ in range(600):
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    sys.exit(f"there was no {what} within a minute")


class Browser:
    """The W3C WebDriver protocol, as far as this test needs it."""

    def __init__(self, folder):
        self.process = subprocess.Popen([DRIVER, "--port=0", "--log-path=" + os.devnull], stdout=subprocess.PIPE, text=True)
        port = next(int(m[1]) for line in self.process.stdout if (m := re.search(r"on port (\d+)\.", line)))
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
                 "--disable-background-networking", "--disable-component-update", "--window-size=1400,1250",
                 f"--user-data-dir={folder}"]
        options = {"binary": BROWSER, "args": flags}
        self.base = f"http://127.0.0.1:{port}/session"
        session = ask(self.base, {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self.base += "/" + session["value"]["sessionId"]

    def open(self, url):
        ask(self.base + "/url", {"url": url})

    def run(self, script):
        return ask(self.base + "/execute/sync", {"script": "return " + script, "args": []})["value"]

    def element(self, css):
        return next(iter(ask(self.base + "/element", {"using": "css selector", "value": css})["value"].values()))

    def click(self, css):
        ask(f"{self.base}/element/{self.element(css)}/click", {})

    def type(self, css, text):
        ask(f"{self.base}/element/{self.element(css)}/value", {"text": text})

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(ask(self.base + "/screenshot")["value"]))

    def close(self):
        urllib.request.urlopen(urllib.request.Request(self.base, method="DELETE"), timeout=60)
        self.process.terminate()
        self.process.wait()


# How many columns of a chart have a part of a line above its middle. Only lines have a hue.
COLUMNS = """(() => {
  const c = document.getElementById('chart-Tokens'), half = Math.floor(c.height / 2), columns = new Set();
  const data = c.getContext('2d').getImageData(0, 0, c.width, half).data;
  for (let i = 0; i < data.length; i += 4) {
    const colour = data.slice(i, i + 3);
    if (data[i + 3] > 127 && Math.max(...colour) - Math.min(...colour) > 80) columns.add(i / 4 % c.width);
  }
  return columns.size;
})()"""


def text_of(browser, selector):
    return browser.run(f"(document.querySelector({json.dumps(selector)}) || {{}}).textContent")


def main():
    with tempfile.TemporaryDirectory() as folder:
        token = pathlib.Path(folder) / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        server = subprocess.Popen(
            [PATCHBAY, "serve", "--model", MODEL, "--port", "0", "--admin", "127.0.0.1:0", "--admin-token-file", token],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = []
        reader = threading.Thread(target=lambda: [said.append(line) for line in server.stdout], daemon=True)
        reader.start()
        urls = wait_for("address", lambda: (lambda u: u if len(u) >= 2 else None)(
            re.findall(r"http://127\.0\.0\.1:\d+", "".join(said))))
        stop = threading.Event()

        def load():
            while not stop.is_set():
                try:
                    ask(own + "/v1/completions", {"model": name, "prompt": "Once upon a time", "max_tokens": 100})
                except OSError:
                    return

        ways = {}
        for url in dict.fromkeys(urls):
            try:
                ask(url + "/version")
                ways["own"] = url
            except urllib.error.HTTPError: # the admin address has no such route
                ways["admin"] = url
        own, admin = ways["own"], ways["admin"]
        name = ask(own + "/v1/models")["data"][0]["id"]
        threads = [threading.Thread(target=load, daemon=True) for _ in range(4)]
        for t in threads:
            t.start()
        browser = Browser(pathlib.Path(folder) / "profile")
        try:
            # The server's own port: live numbers, no control.
            browser.open(own + "/dashboard")
            wait_for("output rate", lambda: re.match(r"[\d.]+", text_of(browser, "[id='tile-Output']") or "") and
                     text_of(browser, "[id='tile-Output']") != "0")
            assert browser.run("document.getElementById('control').hidden") is True
            assert "fcfs" in text_of(browser, "#plugins"), text_of(browser, "#plugins")
            # The admin address: nothing without the token, and a swap with it.
            browser.open(admin + "/dashboard")
            wait_for("request for the token", lambda: "token" in (text_of(browser, "#answer") or ""))
            browser.type("#token", TOKEN + "\t")
            wait_for("list of plugins", lambda: "sjf" in (text_of(browser, "#plugin") or ""))
            browser.run("(document.getElementById('kind').value = 'scheduler', document.getElementById('kind').onchange(),"
                        " document.getElementById('plugin').value = 'sjf', 0)")
            browser.click("#swap")
            answer = wait_for("answer to the swap", lambda: (lambda t: t if t not in ("", "…") else "")(
                text_of(browser, "#answer")))
            # on probation: each client was between two requests just then
            assert "committed" in answer or "on probation" in answer, answer
            wait_for("plugin in its slot", lambda: "sjf" in (text_of(browser, "#plugins") or ""))
            assert "fcfs" not in text_of(browser, "#plugins"), text_of(browser, "#plugins")
            browser.run("(document.getElementById('settings').value = 'ageing=1, oops', 0)")
            browser.click("#set")
            wait_for("what was not understood", lambda: "'oops'" in (text_of(browser, "#answer") or ""))
            wait_for("line in the charts", lambda: browser.run(COLUMNS) > 60)
            if SCREENSHOT:
                browser.screenshot(SCREENSHOT)
        finally:
            stop.set()
            browser.close()
            server.terminate()
            server.wait()
    print("shown, swapped")


main()
