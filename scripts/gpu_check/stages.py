"""What scripts/gpu-check does, one function a stage: each returns what it found, or raises RuntimeError."""
import dataclasses
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from typing import Callable

from gpu_check import bundle


@dataclasses.dataclass
class Context:
    root: str
    out: str
    bundled: str | None
    packages: str | None  # Python packages with nvidia/ in it
    deadline: float
    dry_run: bool
    patience: float = 10  # seconds that a command has to end when it is told to

    @property
    def build(self):
        return os.path.join(self.out, "build")

    @property
    def program(self):
        return os.path.join(self.build, "bin", "patchbay")

    def left(self):
        return max(self.deadline - time.monotonic(), 1)

    def environment(self):
        env = dict(os.environ)
        if self.bundled:
            usr = os.path.join(self.out, "third-party", "usr")
            libraries = os.path.join(usr, "lib", "x86_64-linux-gnu")
            env["PKG_CONFIG"] = os.path.join(usr, "bin", "pkgconf")
            env["PKG_CONFIG_LIBDIR"] = os.path.join(libraries, "pkgconfig")
            env["LD_LIBRARY_PATH"] = os.pathsep.join(
                filter(None, [libraries, os.path.join(usr, "lib"), env.get("LD_LIBRARY_PATH")]))
        return env

    def call(self, name, command, check=True):
        """Runs a command, its output in a log; gives the output."""
        if self.dry_run:
            print("  ", " ".join(shlex.quote(c) for c in command))
            return ""
        os.makedirs(os.path.join(self.out, "logs"), exist_ok=True)
        log = os.path.join(self.out, "logs", name + ".log")
        with open(log, "w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=self.environment(),
                                       start_new_session=True)
            try:
                code = process.wait(self.left())
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(self.patience)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                raise
        with open(log, errors="replace") as file:
            text = file.read()
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


def machine(context):
    shown = context.call("machine", ["nvidia-smi", "--query-gpu=name,compute_cap,memory.total,driver_version",
                                     "--format=csv,noheader"])
    if context.dry_run:
        return None
    first = [part.strip() for part in shown.strip().split("\n")[0].split(",")]
    if len(first) != 4:
        raise RuntimeError(f"nvidia-smi says: {shown[-300:]}")
    nvcc = context.call("nvcc", ["nvcc", "--version"])
    release = re.search(r"release (\S+),", nvcc)
    return {"gpu": first[0], "compute_capability": first[1], "memory": first[2], "driver": first[3],
            "nvcc": release.group(1) if release else "?", "cores": os.cpu_count()}


def configure(context):
    command = ["cmake", "-S", context.root, "-B", context.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
               "-DPATCHBAY_CUDA=ON", "-DPATCHBAY_BENCH=OFF", f"-DPATCHBAY_NVIDIA_PACKAGES={nvidia_packages(context)}"]
    if context.bundled:
        third_party = os.path.join(context.out, "third-party")
        if not context.dry_run:
            bundle.unpack(context.bundled, third_party)
        usr = os.path.join(third_party, "usr")
        libraries = os.path.join(usr, "lib", "x86_64-linux-gnu")
        command += [f"-DCMAKE_PREFIX_PATH={usr}", f"-DCMAKE_LIBRARY_PATH={libraries};{usr}/lib",
                    f"-DCMAKE_INCLUDE_PATH={usr}/include;{usr}/include/x86_64-linux-gnu",
                    f"-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,{libraries}",
                    f"-DPKG_CONFIG_EXECUTABLE={usr}/bin/pkgconf"]
    context.call("configure", command)
    if context.dry_run:
        return None
    with open(os.path.join(context.build, "CMakeCache.txt")) as file:
        cache = file.read()
    return re.search(r"PATCHBAY_CUBLASLT:FILEPATH=(.*)", cache).group(1)


def targets(name, *wanted):
    def build(context):
        return context.call(name, ["ninja", "-C", context.build, *wanted]).strip().split("\n")[-1]
    return build


def tests_of(context, name, command):
    text = context.call(name, command, check=False)
    if context.dry_run:
        return None
    skipped = re.findall(r"^\[  SKIPPED \] (\S+)", text, re.M)
    if skipped: # on this machine there is a GPU
        raise RuntimeError(f"{len(set(skipped))} skipped: {skipped[0]} ... (logs/{name}.log)")
    failures = sorted(set(re.findall(r"^\[  FAILED  \] (\S+)", text, re.M)))
    passed = re.search(r"\[  PASSED  \] (\d+) tests?", text)
    if failures or not passed:
        raise RuntimeError(f"{len(failures)} failed: {' '.join(failures)[:600]}" if failures else text[-300:])
    return f"{passed.group(1)} tests passed"


def kernels(context):
    return tests_of(context, "kernels", [os.path.join(context.build, "bin", "test_cuda_gpu")])


def golden(context):
    """Logits and greedy ids of the small random models, as transformers computes them."""
    program = os.path.join(context.build, "bin", "golden_test")
    return tests_of(context, "golden", [program, "--gtest_filter=*CudaGolden*"])


def plugin_file(context, name):
    return os.path.join(context.build, "lib", "patchbay", "plugins", name + ".so")


def conformance(context):
    found = []
    for name in ("device-cuda", "attention-paged_cuda", "sampler-standard_cuda"):
        text = context.call("conformance-" + name, [context.program, "plugin", "test", plugin_file(context, name)])
        found.append(f"{name}: {text.strip().split(chr(10))[-1]}")
        if "unavailable" in text or "no NVIDIA driver" in text:
            raise RuntimeError(found[-1])
    return "; ".join(found)


def limits(context):
    text = context.call("limits", [context.program, "bench", "machine", "--device", "cuda", "--json"])
    return None if context.dry_run else json.loads(text[text.index("{"):])


PROMPTS = ("Once upon a time", "The little dog", "A", "One day Lily and her mother went to the big park because")


def generated(context, name, engine, *options, model="demo-target"):
    """Texts of a demo model by an engine with these keys; greedy unless the options say otherwise."""
    config = os.path.join(context.out, name + ".yaml")
    if not context.dry_run:
        with open(config, "w") as file:
            file.write(f"model: {context.root}/models/{model}\n{engine}\n")
    command = [context.program, "generate", "--config", config, "--max-tokens", "64",
               *(options or ("--temperature", "0"))]
    for prompt in PROMPTS:
        command += ["--prompt", prompt]
    return context.call(name, command)


ON_CUDA = "device: {plugin: cuda, activation_dtype: %s, batch_invariant: %s}\nattention: paged_cuda"
DRAWN = ("--temperature", "0.8", "--top-p", "0.95", "--seed", "7")


def expect_same(texts, what):
    """That all of {log: text} are one."""
    if len(set(texts.values())) > 1:
        raise RuntimeError(f"{what} (logs/{', logs/'.join(texts)})")


def agreement(context):
    """f32 on the GPU gives the CPU's text: only a tie would not."""
    cpu = generated(context, "agreement-cpu", "device: {plugin: cpu, isa: avx2}")
    gpu = generated(context, "agreement-cuda", ON_CUDA % ("f32", "false"))
    if cpu != gpu:
        raise RuntimeError("the demo model's texts differ (logs/agreement-*.log)")
    return f"{len(PROMPTS)} texts of 64 tokens are the CPU's, in f32"


def sampling(context):
    """standard_cuda gives the texts of standard over the same logits, and both the CPU's greedy ones."""
    found = 0
    for model in ("demo-target", "demo-draft"):
        for kind, options in (("greedy", ("--temperature", "0")), ("drawn", DRAWN)):
            texts = {}
            for sampler in ("standard", "standard_cuda"):
                name = f"sampling-{model}-{kind}-{sampler}"
                texts[name] = generated(context, name, ON_CUDA % ("f32", "false") + "\nsampler: " + sampler, *options,
                                        model=model)
            if kind == "greedy":
                name = f"sampling-{model}-cpu"
                texts[name] = generated(context, name, "device: {plugin: cpu, isa: avx2}", *options, model=model)
            expect_same(texts, f"the texts of {model} ({kind}) differ")
            found += len(PROMPTS)
    return f"{found} texts, greedy and drawn, do not depend on where they are sampled"


def steps_in_flight(context):
    """async_scheduling off and on, with and without graphs: the same texts."""
    found = 0
    for kind, options in (("greedy", ("--temperature", "0")), ("drawn", DRAWN)):
        texts = {}
        for mode in ("NONE", "FULL_DECODE_ONLY", "FULL"):
            for how in ("off", "on"):
                name = f"async-{kind}-{mode.lower()}-{how}"
                texts[name] = generated(context, name, ON_CUDA % ("f32", "true") + "\nsampler: standard_cuda\n"
                                        "engine: {cudagraph_mode: %s, async_scheduling: %s}" % (mode, how), *options)
        expect_same(texts, f"the texts ({kind}) depend on steps in flight or graphs")
        found += len(texts)
    return f"{found} engines, the same texts"


def swaps(context):
    """Samplers and schedulers exchanged on a running engine; a fault or a rollback makes the run invalid."""
    config = os.path.join(context.out, "swaps.yaml")
    if not context.dry_run:
        with open(config, "w") as file:
            file.write(f"""name: swaps
model: {context.root}/models/demo-target
{ON_CUDA % ("f32", "false")}
sampler: standard_cuda
engine: {{async_scheduling: auto}}
workload: {{requests: 24, prompts: {{synthetic: {{tokens: 24}}}}, output_tokens: 48}}
repeats: 1
variants:
  untouched: {{}}
  swapped:
    at:
      - {{request: 6, swap: {{sampler: {{plugin: standard}}}}}}
      - {{request: 12, swap: {{sampler: {{plugin: standard_cuda}}}}}}
      - {{request: 16, swap: {{scheduler: {{plugin: sjf}}}}}}
""")
    text = context.call("swaps", [context.program, "run", config, "--no-report", "--results",
                                  os.path.join(context.out, "swaps")])
    if context.dry_run:
        return None
    if "is invalid" in text or len(re.findall(r"in\s+1\s+of\s+1\s+runs", text)) != 3:
        raise RuntimeError(f"not all swaps were made, or the run is invalid (logs/swaps.log): {text[-400:]}")
    return "three swaps under load, and the run is valid"


def low_precision(context):
    """bf16 has a text of its own; the same in batches of 1 and 4 where products are batch-invariant."""
    weights = "engine: {max_num_seqs: %d, kv_cache_dtype: bfloat16}\n"
    model = "model: {path: " + context.root + "/models/demo-target, dtype: bfloat16}\n"
    texts = []
    for seqs in (4, 1):
        config = os.path.join(context.out, f"bf16-{seqs}.yaml")
        if not context.dry_run:
            with open(config, "w") as file:
                file.write(model + weights % seqs + ON_CUDA % ("bf16", "true") + "\n")
        command = [context.program, "generate", "--config", config, "--temperature", "0", "--max-tokens", "64"]
        for prompt in PROMPTS:
            command += ["--prompt", prompt]
        texts.append(context.call(f"bf16-{seqs}", command))
    if texts[0] != texts[1]:
        raise RuntimeError("batch_invariant: the texts depend on max_num_seqs (logs/bf16-*.log)")
    return "bf16 texts do not depend on the batch"


def graphs(context):
    eager = generated(context, "graphs-none", ON_CUDA % ("f32", "false") + "\nengine: {cudagraph_mode: NONE}")
    for mode in ("FULL_DECODE_ONLY", "FULL"):
        replayed = generated(context, "graphs-" + mode.lower(),
                             ON_CUDA % ("f32", "false") + "\nengine: {cudagraph_mode: %s}" % mode)
        if replayed != eager:
            raise RuntimeError(f"the texts with cudagraph_mode {mode} differ (logs/graphs-*.log)")
    return "the same texts with and without graphs"


def sanitizer(context):
    found = []
    program = os.path.join(context.build, "bin", "test_cuda_gpu")
    reduced = {"memcheck": "*",
               "racecheck": "*Norm*:*IsTheReferences*tiles_64:*IsTheReferences*tiles_128:CudaSampling.*Logprobs*",
               "synccheck": "*IsTheReferences*tiles_128:CudaSampling.*"}
    for tool, tests in reduced.items():
        text = context.call("sanitizer-" + tool, ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", program,
                                                  "--gtest_filter=" + tests], check=False)
        if context.dry_run:
            continue
        summary = re.findall(r"=+ (ERROR SUMMARY.*|RACECHECK SUMMARY.*)", text)
        if not summary or "[  PASSED  ]" not in text or not re.search(r": 0 (errors|hazards)", summary[-1]):
            raise RuntimeError(f"{tool}: {(summary or [text[-300:]])[-1]}")
        found.append(f"{tool}: {summary[-1]}")
    return "; ".join(found)


def bench(model, batches, prompts):
    def run(context):
        text = context.call("bench-" + model, [
            context.program, "bench", "model", "--model", f"{context.root}/configs/models/{model}.yaml", "--load-format",
            "dummy", "--dtype", "bfloat16", "--kv-cache-dtype", "bfloat16", "--device", "cuda", "--attention",
            "paged_cuda", "--batch", batches, "--prompt", prompts, "--output", "64", "--json"])
        return None if context.dry_run else json.loads(text[text.index("{"):])
    return run


@dataclasses.dataclass
class Stage:
    name: str
    run: Callable
    least: float = 10       # seconds that must be left to begin it
    needs: tuple = ()       # that must have passed
    always: bool = False    # run in each call: it is quick, and its answer may change


STAGES = [
    Stage("machine", machine, always=True),
    Stage("configure", configure, 30, ("machine",), always=True),
    Stage("build_kernels", targets("build_kernels", "test_cuda_gpu"), 30, ("configure",), always=True),
    Stage("kernels", kernels, 30, ("build_kernels",)),
    Stage("build_device", targets("build_device", "plugin_device_cuda", "plugin_attention_paged_cuda",
                                    "plugin_sampler_standard_cuda"), 30,
          ("configure",), always=True),
    Stage("build_all", targets("build_all", "patchbay", "all_plugins"), 30, ("build_device",), always=True),
    Stage("conformance", conformance, 30, ("build_all",)),
    Stage("build_golden", targets("build_golden", "golden_test"), 30, ("build_all",), always=True),
    Stage("golden", golden, 40, ("build_golden",)),
    Stage("limits", limits, 20, ("build_all",)),
    Stage("agreement", agreement, 30, ("build_all",)),
    Stage("low_precision", low_precision, 30, ("agreement",)),
    Stage("graphs", graphs, 30, ("agreement",)),
    Stage("sampling", sampling, 40, ("agreement",)),
    Stage("steps_in_flight", steps_in_flight, 60, ("sampling",)),
    Stage("swaps", swaps, 40, ("sampling",)),
    Stage("sanitizer", sanitizer, 120, ("kernels",)),
    Stage("bench_1b", bench("llama-3.2-1b", "1,16,64", "512"), 90, ("agreement",)),
    Stage("bench_8b", bench("llama-3.1-8b", "1,16", "512"), 120, ("agreement",)),
]
