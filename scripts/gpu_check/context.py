"""Where a stage of scripts/gpu-check works, and how it runs a command there."""
import contextlib
import dataclasses
import glob
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent import futures

BUILD_TOOLS = ("cmake", "ninja", "nvcc")  # which are the system's, and are to load the system's libraries
TOOLKIT = "/usr/local/cuda/bin"           # where NVIDIA's installers put it, often outside of PATH
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LOOK = 0.2                                # seconds between two looks whether a signal has come


class Stopped(BaseException):
    """A signal ends this call: no stage may take it for its own failure."""


@dataclasses.dataclass
class Context:
    root: str
    work: str
    bundled: str | None
    packages: str | None  # Python packages with nvidia/ in it
    deadline: float
    dry_run: bool
    patience: float = 10  # seconds that a command has to end after SIGTERM
    architecture: str | None = None  # "90", once the machine has said so
    toolkit: str = TOOLKIT
    built_elsewhere: bool = False         # the programs came with the bundle
    stopped: str | None = None            # the signal that ends this call: "SIGTERM"
    code: int = 0                         # with which the latest command ended

    @property
    def build(self):
        return os.path.join(self.work, "build")

    @property
    def program(self):
        return os.path.join(self.build, "bin", "patchbay")

    @property
    def third_party(self):
        return os.path.join(self.work, "third-party", "usr")

    @property
    def libraries(self):
        """Folders of the bundle's libraries."""
        if not self.bundled:
            return []
        return [os.path.join(self.third_party, "lib", "x86_64-linux-gnu"), os.path.join(self.third_party, "lib")]

    def left(self):
        return max(self.deadline - time.monotonic(), 1)

    def environment(self, tool):
        env = dict(os.environ)
        if not shutil.which("nvcc", path=env.get("PATH")) and os.path.isdir(self.toolkit):
            env["PATH"] = env.get("PATH", os.defpath) + os.pathsep + self.toolkit
        env.setdefault("PATCHBAY_PROBE_TIMEOUT_S", "300")  # a GPU's driver starts slowly in a container
        env.setdefault("PATCHBAY_PROBE_MEMORY_MIB", "0")   # and maps as much as the GPU has
        found = [*self.libraries, *filter(None, [env.pop("LD_LIBRARY_PATH", None)])]
        if found and os.path.basename(tool) not in BUILD_TOOLS:
            env["LD_LIBRARY_PATH"] = os.pathsep.join(found)
        return env

    def nvcc(self):
        return shutil.which("nvcc", path=self.environment("nvcc").get("PATH")) or "nvcc"

    def file(self, name):
        return os.path.join(self.work, name)

    def write(self, name, text):
        """A file of the work folder; its path."""
        path = self.file(name)
        if not self.dry_run:
            os.makedirs(self.work, exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        return path

    @contextlib.contextmanager
    def stopped_by_signals(self):
        """Within it a signal is only noted: all commands that run then are ended where they are waited for."""
        def note(number, _):
            self.stopped = signal.Signals(number).name
        heard = [n for n in STOPPING if signal.getsignal(n) is not signal.SIG_IGN]  # nohup's stay ignored
        before = {n: signal.signal(n, note) for n in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def wait(self, process):
        """Waits for a command; gives its exit code."""
        end = time.monotonic() + self.left()
        while True:
            if self.stopped:
                raise Stopped(self.stopped)
            left = end - time.monotonic()
            try:
                return process.wait(min(max(left, 0), LOOK))
            except subprocess.TimeoutExpired:
                if left <= LOOK:
                    raise

    def end(self, process):
        """Ends a command with all that it started."""
        try:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(self.patience)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def each(self, items, function, threads):
        """function(item) of all items, in so many threads; the results in their order. A signal may reach any thread, and
        only this one handles it, as soon as it runs: so it never waits for longer than LOOK."""
        with futures.ThreadPoolExecutor(threads) as pool:
            begun = [pool.submit(function, item) for item in items]
            while futures.wait(begun, LOOK).not_done:
                pass
            return [one.result() for one in begun]

    def call(self, name, command, check=True):
        """Runs a command, its output in a log; gives the output. Its exit code is in `code` then."""
        if self.dry_run:
            print("  ", " ".join(shlex.quote(c) for c in command))
            return ""
        if self.stopped:
            raise Stopped(self.stopped)
        os.makedirs(os.path.join(self.work, "logs"), exist_ok=True)
        log = os.path.join(self.work, "logs", name + ".log")
        environment = self.environment(command[0])
        found = shutil.which(command[0], path=environment.get("PATH")) or command[0]
        with open(log, "w") as file:
            process = subprocess.Popen([found, *command[1:]], stdout=file, stderr=subprocess.STDOUT, env=environment,
                                       start_new_session=True)
            try:
                code = self.wait(process)
            except BaseException:  # Stopped too: the command's own session gets no Ctrl-C
                self.end(process)
                raise
        with open(log, errors="replace") as file:
            text = file.read()
        self.code = code
        if check and code != 0:
            raise RuntimeError(f"{os.path.basename(command[0])} exits with {code} (logs/{name}.log): {text[-400:]}")
        return text


def nvidia_packages(context):
    """Where pip lays cuBLAS, if the toolkit came without: of this tree, or of a Python on the PATH."""
    if context.packages:
        return context.packages
    folders = [os.path.join(context.root, ".cuda")]
    for python in dict.fromkeys(filter(None, [sys.executable, shutil.which("python3"), "/opt/torch/.venv/bin/python3"])):
        try:
            shown = subprocess.run([python, "-c", "import sys; print(*sys.path, sep='\\n')"], capture_output=True,
                                   text=True, timeout=60)
            folders += shown.stdout.splitlines()
        except (OSError, subprocess.TimeoutExpired):
            pass
    for folder in folders:
        if glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libcublasLt.so.*")):
            return folder
    return folders[0]
