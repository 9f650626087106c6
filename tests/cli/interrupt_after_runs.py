"""interrupt_after_runs.py EXPERIMENT RESULTS RUNS: interrupts it once so many runs are complete, and prints how it ended.
experiments.test reads it."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time

experiment, results, runs = sys.argv[1:]
command = ["patchbay", "run", experiment, "--results", results, "--no-report"]
run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def asked(query):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{results}/results.sqlite?mode=ro", uri=True)) as db:
            return db.execute(query).fetchone()[0]
    except sqlite3.Error:  # it is not there yet
        return 0


while asked("SELECT count(*) FROM run WHERE end = 'complete'") < int(runs):
    assert run.poll() is None, "it ended"
    time.sleep(0.01)
run.send_signal(signal.SIGINT)
print(run.communicate()[1].strip(), run.returncode)
print(asked("SELECT end FROM experiment"), asked("SELECT count(*) FROM quality"))
