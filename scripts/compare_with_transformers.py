#!/usr/bin/env python3
"""Compares a model plugin with Hugging Face transformers, on small random models.

  scripts/compare-with-transformers MODEL_TYPE [--architecture NAME] [--plugin-dir DIR] [--set KEY=VALUE] …

MODEL_TYPE is transformers' word: llama, qwen3, mixtral. Each case draws a small configuration and weights from a seed; the
program `patchbay` and transformers then compute a few prompts in float32. They agree if each logit, but for a number that
is the same for a whole row, is within 1e-4 of the range of its row, and the greedy ids are equal. scripts/compare-with-transformers
runs this file with the pinned versions of scripts/requirements-train.txt.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

LENGTHS = (1, 5, 17, 40)  # tokens of the prompts
GREEDY = 24               # tokens after the last one
VOCAB = 128


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model_type", help="transformers' word: llama, qwen3, mixtral")
    parser.add_argument("--architecture", help="name in config.json, by which patchbay finds the plugin; by default transformers' own")
    parser.add_argument("--plugin-dir", action="append", default=[], help="folder with the plugin, searched first")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of config.json, its value as JSON")
    parser.add_argument("--patchbay", default="patchbay", help="the program")
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the range of a row's logits")
    parser.add_argument("--keep", type=pathlib.Path, help="folder in which the models are left")
    return parser.parse_args()


def small_config(options, seed):
    """A configuration of drawn sizes; only keys that this model type has."""
    from transformers import AutoConfig
    draw = random.Random(seed)
    usual = AutoConfig.for_model(options.model_type)
    heads = draw.choice([2, 4])
    hidden = heads * draw.choice([8, 16])
    layers = draw.choice([2, 3])
    sizes = dict(
        vocab_size=VOCAB, hidden_size=hidden, n_embd=hidden, word_embed_proj_dim=hidden, num_hidden_layers=layers, n_layer=layers,
        num_attention_heads=heads, n_head=heads, num_key_value_heads=draw.choice([h for h in (1, 2, 4) if heads % h == 0]),
        num_kv_heads=draw.choice([h for h in (1, 2, 4) if heads % h == 0]),
        intermediate_size=draw.choice([24, 56]), ffn_dim=draw.choice([24, 64]), head_dim=draw.choice([8, 16]), max_position_embeddings=128,
        n_positions=128, initializer_range=0.2, init_std=0.2, num_local_experts=5, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=16, shared_expert_intermediate_size=24, tie_word_embeddings=draw.choice([True, False]),
        mamba_n_heads=8, mamba_d_state=16, mamba_chunk_size=8, attn_layer_indices=[1])
    keys = {k: v for k, v in sizes.items() if k in usual.to_dict()}
    if getattr(usual, "sliding_window", None) is not None:
        keys["sliding_window"] = 8
    if getattr(usual, "rope_theta", None) is not None:
        keys["rope_theta"] = draw.choice([500.0, 10000.0])
    keys.update(bos_token_id=None, eos_token_id=None, pad_token_id=None)
    for item in options.set:
        key, _, value = item.partition("=")
        keys[key] = json.loads(value)
    return AutoConfig.for_model(options.model_type, **keys)


def expected(model, prompt):
    """Log-softmax of each position's logits, and the greedy ids after the prompt with the distance to the second best."""
    import torch
    with torch.no_grad():
        rows = torch.log_softmax(model(torch.tensor([prompt])).logits[0].double(), -1)
        ids, gaps, tokens = [], [], list(prompt)
        for _ in range(GREEDY):
            best = torch.topk(model(torch.tensor([tokens])).logits[0, -1], 2)
            ids.append(int(best.indices[0]))
            gaps.append(float(best.values[0] - best.values[1]))
            tokens.append(ids[-1])
    return rows.tolist(), ids, gaps


def computed(options, folder, prompt):
    words = [options.patchbay, "generate", "--model", str(folder), "--tokenizer", "none", "--dtype", "float32", "--kv-cache-dtype", "float32",
             "--prompt-ids", ",".join(map(str, prompt)), "--max-tokens", str(GREEDY), "--temperature", "0", "--ignore-eos",
             "--max-logprobs", "-1", "--logprobs", "-1", "--prompt-logprobs", "-1", "--output-format", "jsonl"]
    for one in options.plugin_dir:
        words += ["--plugin-dir", one]
    ran = subprocess.run(words, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{folder}: patchbay fails: {ran.stderr.strip()}")
    said = json.loads(ran.stdout.splitlines()[-1])
    rows = [dict(row["top"]) for row in said.get("prompt_logprobs", []) + said["logprobs"][:1]]
    return [[row[t] for t in range(VOCAB)] for row in rows], said["token_ids"]


def compare(options, case, seed, folder):
    import torch
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(1)  # tiny matrices: more threads only wait for one another
    config = small_config(options, seed)
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    for name, parameter in model.named_parameters():  # else norms are 1 and biases 0, and no plugin could get them wrong
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=1.0 if "norm" in name and name.endswith("weight") else 0.0, std=0.1)
    model.save_pretrained(folder, safe_serialization=True)
    file = folder / "config.json"
    written = json.loads(file.read_text())
    if options.architecture:
        written["architectures"] = [options.architecture]
        file.write_text(json.dumps(written, indent=2))
    draw = random.Random(seed)
    worst = 0.0
    for length in LENGTHS:
        prompt = [draw.randrange(VOCAB) for _ in range(length)]
        (want, want_ids, gaps), (got, got_ids) = expected(model, prompt), computed(options, folder, prompt)
        for position, (a, b) in enumerate(zip(want, got, strict=True)):
            span = max(a) - min(a)
            token = max(range(VOCAB), key=lambda t: abs(a[t] - b[t]))
            share = abs(a[token] - b[token]) / span
            worst = max(worst, share)
            if not share <= options.tolerance:
                return (f"a prompt of {length} tokens, position {position}, token {token}: log-probability {b[token]:.6f}, transformers "
                        f"{a[token]:.6f}: {share:.1e} of the row's range, expected at most {options.tolerance:.0e}"), written
        for i, (a, b) in enumerate(zip(want_ids, got_ids, strict=True)):
            if a != b and gaps[i] < options.tolerance * 10:
                break  # two tokens are equally likely
            if a != b:
                return f"a prompt of {length} tokens: greedy id {i} is {b}, transformers {a}", written
    print(f"ok      case {case} (seed {seed}): {', '.join(f'{k} {written[k]}' for k in ('hidden_size', 'n_embd', 'num_hidden_layers', 'n_layer') if k in written)}; "
          f"logits within {worst:.1e} of their range, {len(LENGTHS)} · {GREEDY} greedy ids equal")
    return None, written


def main():
    options = arguments()
    failed = 0
    for case in range(options.cases):
        seed = options.seed + case
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.keep or pathlib.Path(temporary)) / f"{options.model_type}-{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            wrong, config = compare(options, case, seed, folder)
        if wrong:
            failed += 1
            print(f"FAILED  case {case} (seed {seed}): {wrong}\nagain: --seed {seed} --cases 1 --keep DIR; its config.json:\n{json.dumps(config)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
