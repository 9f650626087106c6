"""change_input.py EXPERIMENT RESULTS FILE: runs it, and adds a line to the file once a run is complete. Prints why runs
are invalid."""

import contextlib
import sqlite3
import subprocess
import sys
import time

experiment, results, file = sys.argv[1:]
command = ["patchbay", "run", experiment, "--results", results, "--no-report"]
run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def asked(query):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{results}/results.sqlite?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()
    except sqlite3.Error:  # it is not there yet
        return []


while run.poll() is None and not asked("SELECT 1 FROM run WHERE end = 'complete'"):
    time.sleep(0.01)
with open(file, "a") as out:
    out.write("3,8,4\n")
run.wait()
for (reason,) in asked("SELECT DISTINCT reason FROM run WHERE NOT valid"):
    print(reason)
