"""What scripts/gpu-check does, one function a stage: each returns what it found, or raises RuntimeError."""
import dataclasses
import glob
import json
import os
import re
from typing import Callable

from gpu_check import bundle, texts
from gpu_check.context import nvidia_packages


def machine(context):
    shown = context.call("machine", ["nvidia-smi", "--query-gpu=name,compute_cap,memory.total,driver_version",
                                     "--format=csv,noheader"])
    if context.dry_run:
        return None
    first = [part.strip() for part in shown.strip().split("\n")[0].split(",")]
    if len(first) != 4:
        raise RuntimeError(f"nvidia-smi says: {shown[-300:]}")
    context.architecture = first[1].replace(".", "")
    try:
        release = re.search(r"release (\S+),", context.call("nvcc", ["nvcc", "--version"]))
    except OSError:  # none is needed for the programs of a bundle
        release = None
    return {"gpu": first[0], "compute_capability": first[1], "memory": first[2], "driver": first[3],
            "nvcc": release.group(1) if release else "none", "cores": os.cpu_count()}


def use_programs(context):
    """Programs of the bundle in the place of a build. Their plugins are probed here: stripped files have no probe
    results yet, and those of the GPU could not run where they were built."""
    libraries = context.libraries[0]
    os.makedirs(libraries, exist_ok=True)
    for library in glob.glob(os.path.join(nvidia_packages(context), "nvidia", "*", "lib", "*.so.*")):
        link = os.path.join(libraries, os.path.basename(library))
        if not os.path.lexists(link):
            os.symlink(library, link)
    plugins = sorted(glob.glob(plugin_file(context, "*")))
    texts = context.each(plugins, lambda file: context.call("probe-" + os.path.basename(file)[:-3],
                                                            [context.program + "-probe", "--keep-refused", file],
                                                            check=False), os.cpu_count())
    refused = [text.strip().split("\n")[-1] for text in texts if "refused" in text]
    return f"programs of the bundle, {len(plugins)} plugins" + "".join("; " + line for line in refused)


def configure(context):
    if context.bundled and not context.dry_run and \
            bundle.unpack_programs(context.bundled, context.root, context.work):
        context.built_elsewhere = True
        return use_programs(context)
    command = ["cmake", "-S", context.root, "-B", context.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
               "-DPATCHBAY_CUDA=ON", "-DPATCHBAY_BENCH=OFF", f"-DCMAKE_CUDA_COMPILER={context.nvcc()}",
               f"-DPATCHBAY_NVIDIA_PACKAGES={nvidia_packages(context)}"]
    if context.architecture:
        command.append(f"-DPATCHBAY_CUDA_ARCHITECTURES={context.architecture}")
    if context.bundled:
        command += bundled_options(context)
    context.call("configure", command)
    if context.dry_run:
        return None
    with open(os.path.join(context.build, "CMakeCache.txt")) as file:
        cache = file.read()
    return re.search(r"PATCHBAY_CUBLASLT:FILEPATH=(.*)", cache).group(1)


def bundled_options(context):
    """Programs find the bundle's libraries by an RPATH, also those that their libraries want: while it builds, no
    LD_LIBRARY_PATH is set, which the compilers would follow too. pkgconf is of the bundle itself."""
    usr, libraries = context.third_party, context.libraries
    pkgconf = context.write("pkgconf", f"""#!/bin/sh
PKG_CONFIG_LIBDIR={libraries[0]}/pkgconfig LD_LIBRARY_PATH={":".join(libraries)} exec {usr}/bin/pkgconf "$@"
""")
    if not context.dry_run:
        bundle.unpack(context.bundled, os.path.dirname(usr))
        os.chmod(pkgconf, 0o755)
    old_tags = "-Wl,--disable-new-dtags"
    return [f"-DCMAKE_PREFIX_PATH={usr}", f"-DCMAKE_LIBRARY_PATH={';'.join(libraries)}",
            f"-DCMAKE_INCLUDE_PATH={usr}/include;{usr}/include/x86_64-linux-gnu",
            f"-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,{libraries[0]} {old_tags}",
            f"-DCMAKE_MODULE_LINKER_FLAGS={old_tags}", f"-DCMAKE_BUILD_RPATH={';'.join(libraries)}",
            f"-DPKG_CONFIG_EXECUTABLE={pkgconf}"]


def targets(name, *wanted):
    def build(context):
        if context.built_elsewhere:
            return "of the bundle"
        return context.call(name, ["ninja", "-C", context.build, *wanted]).strip().split("\n")[-1]
    return build


def tests_of(context, name, command):
    text = context.call(name, command, check=False)
    if context.dry_run:
        return None
    skipped = re.findall(r"^\[  SKIPPED \] (\S+)", text, re.M)
    if skipped: # on this machine there is a GPU
        raise RuntimeError(f"{len(set(skipped))} skipped: {skipped[0]} ... (logs/{name}.log)")
    return f"{passed_in(text, context.code, name)} tests passed"


def passed_in(text, code, name):
    """How many tests of a program of GoogleTest passed: at least one, and the program ended well, too."""
    failures = sorted(set(re.findall(r"^\[  FAILED  \] (\S+)", text, re.M)))
    passed = re.search(r"\[  PASSED  \] (\d+) tests?", text)
    if failures:
        raise RuntimeError(f"{len(failures)} failed: {' '.join(failures)[:600]}")
    if not passed or passed.group(1) == "0":
        raise RuntimeError(f"no test passed (logs/{name}.log): {text[-300:]}")
    if code != 0:
        raise RuntimeError(f"{passed.group(1)} tests passed, then it ended with {code} (logs/{name}.log): {text[-300:]}")
    return passed.group(1)


def kernels(context):
    return tests_of(context, "kernels", [os.path.join(context.build, "bin", "test_cuda_gpu")])


def golden(context):
    """Logits and greedy ids of the small random models, as transformers computes them."""
    program = os.path.join(context.build, "bin", "golden_test")
    return tests_of(context, "golden", [program, "--gtest_filter=*CudaGolden*"])


def plugin_file(context, name):
    return os.path.join(context.build, "lib", "patchbay", "plugins", name + ".so")


def conformance(name):
    def run(context):
        text = context.call("conformance-" + name, [context.program, "plugin", "test", plugin_file(context, name)])
        if "unavailable" in text or "not available on this machine" in text:
            raise RuntimeError(text.strip().split("\n")[-1])
        return text.strip().split("\n")[-1] if text else None
    return run


def limits(context):
    text = context.call("limits", [context.program, "bench", "machine", "--device", "cuda", "--json"])
    return None if context.dry_run else texts.json_in(text)


# Which tests a tool runs, in parts that each are done within a call.
SANITIZED = {
    "memcheck": {"ops": "CudaOps*:*/CudaOps*:CudaTokens*:CudaConversion*", "attention": "*CudaAttention*tiles_*",
                 "plain_attention": "*CudaAttention*-*tiles_*", "sampling": "CudaSampling.*"},
    "racecheck": {"norms": "*Norm*", "attention": "*IsTheReferences*tiles_64:*IsTheReferences*tiles_128",
                  "sampling": "CudaSampling.*Logprobs*"},
    "synccheck": {"attention": "*IsTheReferences*tiles_128", "sampling": "CudaSampling.*"},
}


def sanitizer(tool, part):
    def run(context):
        name = f"sanitizer-{tool}-{part}"
        try:
            text = context.call(name, ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
                                       os.path.join(context.build, "bin", "test_cuda_gpu"),
                                       "--gtest_filter=" + SANITIZED[tool][part]], check=False)
        except FileNotFoundError as error:
            raise RuntimeError("compute-sanitizer is not on this machine: it comes with the CUDA Toolkit") from error
        if context.dry_run:
            return None
        summary = re.findall(r"=+ (ERROR SUMMARY.*|RACECHECK SUMMARY.*)", text)
        if not summary or not re.search(r": 0 (errors|hazards)", summary[-1]):
            raise RuntimeError(f"{tool}: {(summary or [text[-300:]])[-1]}")
        passed_in(text, context.code, name)
        return summary[-1]
    return run


def bench(name, model, batches, prompts, sampler="standard_cuda", **engine):
    """`patchbay bench model` as one would serve: graphs, steps in flight, sampling on the GPU."""
    def run(context):
        keys = {"kv_cache_dtype": "bfloat16", "cudagraph_mode": "FULL_DECODE_ONLY", "async_scheduling": "on",
                "max_num_batched_tokens": 8192, **engine}
        config = context.write(name + ".yaml", f"""include: {context.root}/configs/models/{model}.yaml
model: {{load_format: dummy, dtype: bfloat16}}
device: cuda
attention: paged_cuda
sampler: {sampler}
engine: {{{', '.join(f'{k}: {v}' for k, v in keys.items())}}}
""")
        text = context.call(name, [context.program, "bench", "model", "--model", config, "--batch", batches, "--prompt",
                                   prompts, "--output", "64", "--json"])
        if context.dry_run:
            return None
        found = texts.json_in(text)
        speeds = [f"{c['batch']} x {c['prompt']}: prefill {c['prefill']['tokens_per_second']:.0f}, decode "
                  f"{c['decode']['tokens_per_second']:.0f} tokens/s, {c['replayed']:.0%} by a graph, "
                  f"{c['in_flight']:.0%} in flight" for c in found["cases"]]
        return {"summary": "; ".join(speeds), "bench": found}
    return run


PLUGINS = "lib/patchbay/plugins/*.so"
EAGER = {"cudagraph_mode": "NONE", "async_scheduling": "off"}


def bench_kernels(context):
    """Each kernel alone, by the GPU's own events."""
    text = context.call("bench-kernels", [os.path.join(context.build, "bin", "bench_cuda_kernels")])
    if context.dry_run:
        return None
    found = texts.json_in(text)
    return {"summary": "; ".join(f"{k['name']}: {k['microseconds']:.1f} us" for k in found["kernels"]), **found}


@dataclasses.dataclass
class Stage:
    name: str
    run: Callable
    least: float = 10          # seconds that must be left to begin it
    needs: tuple = ()          # what it cannot run without: not what ought to be right before
    always: bool = False       # run in each call: it is quick, and its answer may change
    most: float | None = None  # seconds after which it has failed; none: a call that cuts it off is gone on with
    makes: tuple = ()          # of a build: files that the stages which need it run


STAGES = [
    Stage("machine", machine, always=True, most=60),
    Stage("configure", configure, 30, always=True),
    Stage("build_kernels", targets("build_kernels", "test_cuda_gpu", "bench_cuda_kernels"), 30, ("configure",),
          always=True, makes=("bin/test_cuda_gpu", "bin/bench_cuda_kernels")),
    Stage("kernels", kernels, 30, ("build_kernels",), most=180),
    Stage("bench_kernels", bench_kernels, 20, ("build_kernels",), most=120),
    Stage("build_device", targets("build_device", "plugin_device_cuda", "plugin_attention_paged_cuda",
                                  "plugin_sampler_standard_cuda"), 30, ("configure",), always=True),
    Stage("build_all", targets("build_all", "patchbay", "all_plugins"), 30, ("build_device",), always=True,
          makes=("bin/patchbay*", PLUGINS)),
    *(Stage("conformance_" + name, conformance(name), 30, ("build_all",), most=300)
      for name in ("device-cuda", "attention-paged_cuda", "sampler-standard_cuda")),
    Stage("limits", limits, 20, ("build_all",), most=120),
    Stage("agreement", texts.agreement, 30, ("build_all",), most=180),
    Stage("low_precision", texts.low_precision, 30, ("build_all",), most=180),
    Stage("batch_invariance", texts.batch_invariance, 30, ("build_all",), most=120),
    Stage("graphs", texts.graphs, 30, ("build_all",), most=180),
    Stage("sampling", texts.sampling, 40, ("build_all",), most=240),
    Stage("steps_in_flight", texts.steps_in_flight, 60, ("build_all",), most=300),
    Stage("swaps", texts.swaps, 40, ("build_all",), most=120),
    Stage("build_golden", targets("build_golden", "golden_test"), 30, ("build_all",), always=True,
          makes=("bin/golden_test", PLUGINS)),
    Stage("golden", golden, 40, ("build_golden",), most=240),
    Stage("bench_1b", bench("bench_1b", "llama-3.2-1b", "1,16,64,256", "512"), 90, ("build_all",), most=300),
    Stage("bench_1b_eager", bench("bench_1b_eager", "llama-3.2-1b", "1,64", "512", "standard", **EAGER), 60, ("build_all",),
          most=240),
    Stage("bench_1b_prefill", bench("bench_1b_prefill", "llama-3.2-1b", "1", "2048,8192"), 60, ("build_all",),
          most=240),
    Stage("bench_8b", bench("bench_8b", "llama-3.1-8b", "1,16,64,256", "512"), 150, ("build_all",), most=420),
    Stage("bench_8b_prefill", bench("bench_8b_prefill", "llama-3.1-8b", "1", "2048,8192"), 120, ("build_all",),
          most=300),
    Stage("bench_8b_context", bench("bench_8b_context", "llama-3.1-8b", "64", "2048"), 120, ("build_all",), most=300),
    *(Stage(f"{tool}_{part}", sanitizer(tool, part), 60, ("build_kernels",), most=300)
      for tool, parts in SANITIZED.items() for part in parts),
]
