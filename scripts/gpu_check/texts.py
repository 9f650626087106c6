"""Stages that generate texts with the demo models: the GPU beside the CPU, and the GPU's ways of working beside each
other."""
import json
import re

PROMPTS = ("Once upon a time", "The little dog", "A", "One day Lily and her mother went to the big park because")
STORY = ("Once upon a time there was a little dog named Max. Max liked to play in the park with his friend Lily. One day "
         "they found a big red ball under a tree. \"Look, Max!\" said Lily. \"Let us play with the ball.\" They ran and "
         "jumped and laughed all day. When the sun went down, they were tired and went home to sleep.")
DRAWN = ("--temperature", "0.8", "--top-p", "0.95", "--seed", "7")
CPU = "device: {plugin: cpu, isa: avx2}\nattention: reference\n"

F32_NEAR = 2e-3          # of log-probabilities, where sums are in another order
BF16_NEAR = (0.05, 0.5)  # their mean and greatest distance, where activations have 8 bits


def on_cuda(activations="f32", invariant="false", sampler="standard", **engine):
    keys = "".join(f", {k}: {v}" for k, v in engine.items())
    return (f"device: {{plugin: cuda, activation_dtype: {activations}, batch_invariant: {invariant}}}\n"
            f"attention: paged_cuda\nsampler: {sampler}\nengine: {{kv_cache_dtype: %s{keys}}}\n")


def generated(context, name, engine, *options, model="demo-target", dtype="float32", prompts=PROMPTS, tokens=64):
    """What a demo model says by an engine, an output a prompt; greedy unless the options say otherwise. Weights and KV
    are of `dtype` on the CPU and on the GPU: f32 activations beside bf16 weights are rounded to bf16 on a GPU alone."""
    if "engine:" not in engine:
        engine += "engine: {kv_cache_dtype: %s}\n"
    config = context.write(name + ".yaml",
                           f"model: {{path: {context.root}/models/{model}, dtype: {dtype}}}\n" + engine % dtype)
    command = [context.program, "generate", "--config", config, "--max-tokens", str(tokens), "--output-format", "jsonl",
               *(options or ("--temperature", "0"))]
    for prompt in prompts:
        command += ["--prompt", prompt]
    text = context.call(name, command)
    outputs = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if not context.dry_run and len(outputs) != len(prompts):
        raise RuntimeError(f"{len(outputs)} outputs for {len(prompts)} prompts (logs/{name}.log)")
    return sorted(outputs, key=lambda o: o["prompt"])


def json_in(text):
    return json.loads(text[text.index("{"):])


def ids(outputs):
    return [o["token_ids"] for o in outputs]


def expect_same(outputs, what):
    """That all of {log: outputs} have the same tokens."""
    tokens = [ids(o) for o in outputs.values()]
    if any(t != tokens[0] for t in tokens):
        raise RuntimeError(f"{what} (logs/{', logs/'.join(outputs)})")


def logprobs(output, key="logprobs"):
    return [t["logprob"] for t in output.get(key, []) if t["logprob"] is not None]


def expect_near(one, other, near):
    """That greedy outputs agree up to where two tokens are equally likely but for `near`; how many tokens do."""
    agreed = 0
    for a, b in zip(one, other):
        for i, (x, y) in enumerate(zip(a["token_ids"], b["token_ids"])):
            top = dict(map(tuple, a["logprobs"][i]["top"]))
            if x != y and abs(top.get(x, 0) - top.get(y, -1e9)) > near:
                raise RuntimeError(f"prompt {a['prompt']}: token {i} is {y}, expected {x}")
            if x != y:  # a tie: what follows may be another text
                break
            distance = abs(a["logprobs"][i]["logprob"] - b["logprobs"][i]["logprob"])
            if not distance <= near:
                raise RuntimeError(f"prompt {a['prompt']}: token {i} is {distance:.2g} more or less likely, expected at "
                                   f"most {near}")
            agreed += 1
    return agreed


def distances(one, other):
    """Mean and greatest distance of the log-probabilities of one prompt's tokens."""
    a, b = (logprobs(o[0], "prompt_logprobs") for o in (one, other))
    if not a or len(a) != len(b):
        raise RuntimeError(f"{len(a)} and {len(b)} log-probabilities of one prompt")
    all_of_them = [abs(x - y) for x, y in zip(a, b)]
    if any(d != d for d in all_of_them):
        raise RuntimeError("a log-probability is NaN")
    return sum(all_of_them) / len(all_of_them), max(all_of_them)


def agreement(context):
    """f32 on the GPU, weights and KV too, beside f32 on the CPU."""
    options = ("--temperature", "0", "--logprobs", "2")
    agreed = 0
    for model in ("demo-target", "demo-draft"):
        cpu = generated(context, f"agreement-{model}-cpu", CPU, *options, model=model)
        gpu = generated(context, f"agreement-{model}-cuda", on_cuda(), *options, model=model)
        agreed += expect_near(cpu, gpu, F32_NEAR)
    return None if context.dry_run else f"{agreed} tokens and their log-probabilities are the CPU's, in f32"


def low_precision(context):
    """bf16 on the GPU beside bf16 weights and f32 activations on the CPU: how likely a story is by both."""
    options = ("--temperature", "0", "--prompt-logprobs", "0")
    cpu = generated(context, "bf16-cpu", CPU, *options, dtype="bfloat16", prompts=[STORY], tokens=1)
    gpu = generated(context, "bf16-cuda", on_cuda("bf16"), *options, dtype="bfloat16", prompts=[STORY], tokens=1)
    if context.dry_run:
        return None
    mean, most = distances(cpu, gpu)
    found = f"log-probabilities are {mean:.3g} apart on average, {most:.3g} at most"
    if not (mean <= BF16_NEAR[0] and most <= BF16_NEAR[1]):
        raise RuntimeError(f"bf16: {found}, expected {BF16_NEAR[0]} and {BF16_NEAR[1]} (logs/bf16-*.log)")
    return found


def batch_invariance(context):
    """The same bf16 texts in batches of 1 and 4 where products are batch-invariant."""
    outputs = {f"invariant-{seqs}": generated(context, f"invariant-{seqs}", on_cuda("bf16", "true", max_num_seqs=seqs),
                                              dtype="bfloat16") for seqs in (4, 1)}
    expect_same(outputs, "batch_invariant: the texts depend on max_num_seqs")
    return "bf16 texts do not depend on the batch"


def replayed(context, name):
    """The share of decode steps that replay a graph by the configuration of that name."""
    log = name + "-replayed"
    text = context.call(log, [context.program, "bench", "model", "--model", context.file(name + ".yaml"), "--batch",
                              str(len(PROMPTS)), "--prompt", "16", "--output", "32", "--repeats", "1", "--json"])
    if context.dry_run:
        return None
    share = json_in(text)["cases"][0]["replayed"]
    if not share > 0:
        raise RuntimeError(f"no step replays a graph (logs/{log}.log)")
    return share


def graphs(context):
    """The same texts without graphs and with those that steps do replay."""
    outputs, shares = {}, []
    for mode in ("NONE", "FULL_DECODE_ONLY", "FULL"):
        name = f"graphs-{mode.lower()}"
        outputs[name] = generated(context, name, on_cuda(cudagraph_mode=mode))
        if mode != "NONE":
            shares.append(replayed(context, name))
    expect_same(outputs, "the texts depend on cudagraph_mode")
    if context.dry_run:
        return None
    return f"the same texts with and without graphs, which {min(shares):.0%} of decode steps replay"


def sampling(context):
    """standard_cuda chooses what standard chooses over the same logits."""
    found = 0
    for model in ("demo-target", "demo-draft"):
        for kind, options in (("greedy", ("--temperature", "0")), ("drawn", DRAWN),
                              ("penalised", (*DRAWN, "--repetition-penalty", "1.2", "--frequency-penalty", "0.3"))):
            outputs = {}
            for sampler in ("standard", "standard_cuda"):
                name = f"sampling-{model}-{kind}-{sampler}"
                outputs[name] = generated(context, name, on_cuda(sampler=sampler), *options, model=model)
            expect_same(outputs, f"the texts of {model} ({kind}) depend on the sampler")
            found += len(PROMPTS)
    return f"{found} texts do not depend on where they are sampled"


def steps_in_flight(context):
    """async_scheduling off and on, with and without graphs: the same texts."""
    found = 0
    for kind, options in (("greedy", ("--temperature", "0")), ("drawn", DRAWN)):
        outputs = {}
        for mode in ("NONE", "FULL_DECODE_ONLY", "FULL"):
            for how in ("off", "on"):
                name = f"async-{kind}-{mode.lower()}-{how}"
                engine = on_cuda(invariant="true", sampler="standard_cuda", cudagraph_mode=mode, async_scheduling=how)
                outputs[name] = generated(context, name, engine, *options)
        expect_same(outputs, f"the texts ({kind}) depend on steps in flight or graphs")
        found += len(outputs)
    return f"{found} engines, the same texts"


def swaps(context):
    """Samplers and schedulers exchanged on a running engine; a fault or a rollback makes the run invalid."""
    config = context.write("swaps.yaml", f"""name: swaps
model: {{path: {context.root}/models/demo-target, dtype: float32}}
{on_cuda(sampler="standard_cuda", async_scheduling="auto") % "float32"}
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
    text = context.call("swaps", [context.program, "run", config, "--no-report", "--results", f"{context.work}/swaps"])
    if context.dry_run:
        return None
    if "is invalid" in text or len(re.findall(r"in\s+1\s+of\s+1\s+runs", text)) != 3:
        raise RuntimeError(f"not all swaps were made, or the run is invalid (logs/swaps.log): {text[-400:]}")
    return "three swaps under load, and the run is valid"
