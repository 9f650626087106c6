"""python3 scrape_and_interrupt.py FILE FOLDER: runs an experiment, scrapes its metrics until three requests have ended,
interrupts it, and prints what that showed. run.test reads it."""

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


page = ""
while run.poll() is None and not re.search(r'^patchbay_requests_finished_total{reason="length"} 3$', page, re.M):
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
