"""python3 interrupt_blocked.py COMMAND…: interrupts a command twice whose standard output takes nothing, and prints how it
ended. generate.test reads it."""

import fcntl
import os
import signal
import subprocess
import sys
import time

PIPE_SIZE = 1031  # F_SETPIPE_SZ


def status(pid: int, field: str) -> int:
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1], 16) for line in lines if line.startswith(field + ":"))


def interrupts(pid: int, field: str) -> bool:
    return bool(status(pid, field) >> (signal.SIGINT - 1) & 1)


def until(condition, what: str) -> None:
    end = time.monotonic() + 120
    while not condition():
        if time.monotonic() > end:
            command.kill()
            sys.exit(f"{what}: never")
        time.sleep(0.01)


reader, writer = os.pipe()
fcntl.fcntl(writer, PIPE_SIZE, 4096)
os.write(writer, b"x" * 4096)
command = subprocess.Popen(sys.argv[1:], stdout=writer, stderr=subprocess.DEVNULL)
until(lambda: interrupts(command.pid, "SigCgt"), "catches interrupts")
command.send_signal(signal.SIGINT)
until(lambda: not interrupts(command.pid, "ShdPnd") and not interrupts(command.pid, "SigPnd"), "takes the first one")
assert command.poll() is None, "it did not block"
command.send_signal(signal.SIGINT)
until(lambda: command.poll() is not None, "ends by the second one")
print("ended by", signal.Signals(-command.returncode).name if command.returncode < 0 else command.returncode)
