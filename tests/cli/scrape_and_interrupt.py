"""python3 scrape_and_interrupt.py FILE FOLDER [COUNT]: runs an experiment, scrapes its metrics until COUNT requests (by
default 3) have ended, interrupts it, and prints what that showed. run.test and resume.test read it."""

import re
import signal
import subprocess
import sys
import urllib.request

command = ["patchbay", "run", sys.argv[1], "--results", sys.argv[2], "--no-report", "--metrics-port", "0"]
run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
address = re.search(r"http://\S+", run.stderr.readline()).group()


def scrape() -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read().decode()


def finished(page: str) -> int:
    count = re.search(r'^patchbay_requests_finished_total{reason="length"} (\d+)$', page, re.M)
    return int(count[1]) if count else 0


least = int(sys.argv[3]) if len(sys.argv) > 3 else 3
page = ""
while run.poll() is None and finished(page) < least:
    page = scrape()
for line in sorted(re.findall(r"^patchbay_experiment_info.*", page, re.M)):
    print(line)
schedulers = re.findall(r'^patchbay_plugin_info\{.*kind="scheduler",plugin="(\w+)".*\} 1$', page, re.M)
print("schedulers in a slot:", *schedulers)
run.send_signal(signal.SIGINT)
out, err = run.communicate()
for line in out.splitlines():
    if line.startswith(("note:", "no winner")):
        print(line)
print(err.strip(), run.returncode)
