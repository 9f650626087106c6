"""python3 interrupt_hung.py FILE FOLDER: runs an experiment until a plugin of it hangs, interrupts it, and prints how it
ended. resume.test reads it."""

import signal
import subprocess
import sys

command = ["patchbay", "run", sys.argv[1], "--plugin-dir", "plugins", "--results", sys.argv[2], "--no-report"]
run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
while run.stderr.readline() != "faulty: hangs\n":
    assert run.poll() is None, "it ended"
run.send_signal(signal.SIGINT)
out, err = run.communicate()
notes = " ".join(line for line in out.splitlines() if not line.startswith(" "))
print(notes[notes.index("note:") :].split(" note: nothing")[0])
print(err.strip(), run.returncode)
