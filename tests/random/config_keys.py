#!/usr/bin/env python3
"""Changes keys of small models' configurations, and asks transformers what each then computes.

  config_keys.py cases DIR [--seed N] [--pairs N]   writes DIR/cases.json: changes of each base, [path, value] or [path] to remove
  config_keys.py expect DIR                         adds what the installed transformers (4.57 or 5) computes

Both versions are asked about the same cases, 5 first; the number of a result ("v5", and "v4" where it differs) is its row
in DIR/model.safetensors, and none means that transformers fails or makes weights up. config_keys_test reads DIR
(PATCHBAY_CONFIG_CASES, by default tests/golden/config_keys) and demands of each case: the same logits as transformers 5,
or refused. Without a seed the cases are those that the repository keeps; with one, values are drawn and keys are changed
together.
"""
import argparse
import copy
import json
import os
import random
import resource
import sys
import tempfile
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "golden" / "models"
PROMPT = 40     # tokens: longer than every window of the bases
ROWS = (11, 39)  # whose logits are kept
BASES = ["llama_mha", "llama3_rope", "llama_yarn", "llama_linear_rope", "llama_gqa_tied", "mistral_window", "qwen2_window", "qwen3", "gpt2_scaled", "opt",
         "phi3", "phi3_longrope", "gemma", "gemma2", "gemma3", "gemma3_vision", "mixtral", "qwen3_moe_mixed", "bamba", "gpt_oss",
         "smollm3", "qwen2_moe", "cohere", "cohere2", "granite", "olmo2", "phi", "stablelm", "starcoder2",
         "gpt_neox", "gpt_neox_sequential", "falcon", "falcon_alibi", "falcon_grouped"]

VARIANTS = ("llama3_rope", "llama_yarn", "llama_linear_rope", "llama_gqa_tied", "phi3_longrope", "gemma3_vision", "gpt_neox_sequential", "falcon_alibi")  # of a family that is there already

# Every key that a configuration of transformers 4.57 or 5 has for one of these families, or that checkpoints are known
# to carry, and values that differ from what is usual. Each is tried on each base: a key of another family is unknown
# there.
SHAPES = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
          "moe_intermediate_size", "num_experts", "num_local_experts", "n_embd", "n_inner", "n_layer", "n_head", "ffn_dim", "word_embed_proj_dim",
          "mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv", "mamba_expand", "num_codebooks"]
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
LONG = {"rope_type": "longrope", "short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [4.0] * 4, "original_max_position_embeddings": 64}
LONG8 = dict(LONG, short_factor=[1.0, 1.5, 2.0, 3.0] * 2, long_factor=[4.0] * 8)  # of twice as many pairs
ROPES = [{}, None, [], "x", 7, {"rope_type": "default"}, {"rope_type": "default", "rope_theta": 50.0}, {"type": "linear", "factor": 4.0}, {"rope_type": "linear", "factor": 4.0},
         {"rope_type": "linear", "factor": 4.0, "rope_theta": 50.0}, {"rope_type": "linear", "type": "yarn", "factor": 4.0}, {"factor": 4.0},
         {"rope_type": "linear"}, {"rope_type": "linear", "factor": None}, {"rope_type": "linear", "factor": 4.0, "partial_rotary_factor": 0.5},
         {"rope_type": "default", "partial_rotary_factor": 0.5}, {"rope_type": "default", "partial_rotary_factor": 1.0},
         YARN, dict(YARN, factor=None), dict(YARN, attention_factor=2.0), dict(YARN, beta_fast=2.0), dict(YARN, beta_slow=0.1), dict(YARN, mscale=0.5, mscale_all_dim=2.0),
         dict(YARN, mscale=0.5), dict(YARN, truncate=False), {k: v for k, v in YARN.items() if k != "original_max_position_embeddings"},
         dict(YARN, short_factor=[1.0, 1.5, 2.0, 3.0], long_factor=[4.0] * 4), LONG8, dict(LONG8, factor=4.0), LLAMA3, {k: v for k, v in LLAMA3.items() if k != "original_max_position_embeddings"},
         {k: v for k, v in LLAMA3.items() if k != "low_freq_factor"}, LONG, dict(LONG, factor=4.0), dict(LONG, attention_factor=2.0), dict(LONG, rope_type="su"),
         {k: v for k, v in LONG.items() if k != "original_max_position_embeddings"}, dict(LONG, short_factor=[1.0]), {"rope_type": "dynamic", "factor": 2.0},
         {"rope_type": "proportional", "partial_rotary_factor": 0.5}, {"rope_type": "other", "factor": 2.0}, {"mrope_section": [2, 1, 1], "rope_type": "default"},
         {"full_attention": {"rope_type": "default", "rope_theta": 50.0}, "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}},
         {"full_attention": {"rope_type": "linear", "factor": 4.0}}, {"sliding_attention": {"rope_theta": 500.0}}]
VALUES = {
    # read by most
    "rms_norm_eps": [0.1, "x"], "layer_norm_epsilon": [0.1], "layer_norm_eps": [0.1], "rope_theta": [50.0, 50, [], "x", None], "rope_scaling": ROPES, "rope_parameters": ROPES,
    "partial_rotary_factor": [0.5, 1.0, 0.25, None], "max_position_embeddings": [64, 256, None], "original_max_position_embeddings": [24, 64, 256],
    "n_positions": [64], "hidden_act": ["gelu", "relu", "gelu_pytorch_tanh", "silu", None], "hidden_activation": ["gelu", "silu", "gelu_pytorch_tanh", None],
    "activation_function": ["gelu", "gelu_new", "relu", "silu", "gelu_pytorch_tanh", None], "tie_word_embeddings": [True, False, None, "x"], "attention_bias": [True, False],
    "mlp_bias": [True, False], "sliding_window": [8, 4, 0, 1000, None, "x"], "use_sliding_window": [True, False], "max_window_layers": [0, 1, 2],
    "layer_types": [["full_attention"] * 4, ["sliding_attention"] * 4, None, [], "full_attention"], "sliding_window_pattern": [1, 2, 3], "_sliding_window_pattern": [1, 2],
    "query_pre_attn_scalar": [24, 100, None], "attn_logit_softcapping": [1.0, None], "final_logit_softcapping": [2.0, None], "rope_local_base_freq": [50.0],
    "use_bidirectional_attention": [True, False, None, "all"], "is_causal": [True, False], "num_experts_per_tok": [1, 2], "norm_topk_prob": [True, False],
    "decoder_sparse_step": [1, 2], "mlp_only_layers": [[], [0], None], "scale_attn_weights": [False], "scale_attn_by_inverse_layer_idx": [True, False],
    "reorder_and_upcast_attn": [True], "add_cross_attention": [True, False], "do_layer_norm_before": [True, False], "_remove_final_layer_norm": [True, False], "enable_bias": [True, False],
    "layer_norm_elementwise_affine": [True, False], "attn_layer_indices": [[], [0], [2], None], "mamba_conv_bias": [True, False], "mamba_proj_bias": [True, False],
    "mamba_chunk_size": [4, 256], "time_step_limit": [[0.0, 0.5], [0.1, 0.2], None, [0.0, {"__float__": "Infinity"}]], "time_step_min": [0.1], "time_step_max": [0.2], "time_step_floor": [0.1], "layers_block_type": [["attention"] * 4],
    # of training, of other heads, of generation
    "attention_dropout": [0.5], "resid_pdrop": [0.5], "embd_pdrop": [0.5], "attn_pdrop": [0.5], "dropout": [0.5], "layerdrop": [0.5], "router_jitter_noise": [0.5],
    "initializer_range": [0.5], "init_std": [0.5], "router_aux_loss_coef": [0.5], "output_router_logits": [True], "z_loss_coefficient": [0.5], "num_logits_to_keep": [None, 3],
    "use_cache": [False], "use_mamba_kernels": [True], "pretraining_tp": [2], "pad_token_id": [0, 5], "bos_token_id": [1], "eos_token_id": [2, [2, 3]], "summary_type": ["mean"],
    "summary_use_proj": [False], "summary_activation": ["tanh"], "summary_proj_to_labels": [False], "summary_first_dropout": [0.5], "ignore_index": [-100],
    "return_dict": [False], "output_hidden_states": [True], "output_attentions": [True], "torchscript": [True], "dtype": ["bfloat16"], "torch_dtype": ["bfloat16"],
    "use_bfloat16": [True], "tf_legacy_loss": [True], "pruned_heads": [{"0": [0]}], "chunk_size_feed_forward": [4], "is_encoder_decoder": [True], "is_decoder": [True],
    "cross_attention_hidden_size": [8], "tie_encoder_decoder": [True], "max_length": [5], "min_length": [5], "do_sample": [True], "temperature": [0.5], "top_k": [5], "top_p": [0.5],
    "repetition_penalty": [2.0], "length_penalty": [2.0], "no_repeat_ngram_size": [2], "bad_words_ids": [[[3]]], "suppress_tokens": [[3]], "forced_bos_token_id": [3],
    "num_beams": [2], "architectures": [["LlamaForCausalLM"], ["Qwen2ForCausalLM"], ["MistralForCausalLM"]], "model_type": ["llama", "mistral", "qwen2", "gemma2", "gemma3", "nothing"],
    "finetuning_task": ["x"], "id2label": [{"0": "a", "1": "b"}], "label2id": [{"a": 0}], "num_labels": [3], "problem_type": ["regression"], "tokenizer_class": ["x"], "prefix": ["x"], "sep_token_id": [3],
    "decoder_start_token_id": [3], "task_specific_params": [{"x": {"max_length": 3}}], "_name_or_path": ["x"], "transformers_version": ["3.0.0"],
    "auto_map": [{"AutoModelForCausalLM": "modeling_x.X"}], "cache_implementation": ["hybrid", "static"], "unsloth_fixed": [True], "_commit_hash": ["x"],
    # of other families
    "attention_multiplier": [2.0], "embedding_multiplier": [2.0], "residual_multiplier": [2.0], "logits_scaling": [2.0], "logit_scale": [2.0], "clip_qkv": [0.1], "qk_layernorm": [True], "use_qk_norm": [True],
    "no_rope_layers": [[0, 0, 0, 0]], "no_rope_layer_interval": [1], "attention_chunk_size": [4], "alibi": [True], "parallel_attn": [True], "rotary_pct": [0.5], "rotary_dim": [4], "rope_type": ["yarn"], "rope_pct": [0.5],
    "mrope_section": [[2, 1, 1]], "scale_emb": [2.0], "scale_depth": [2.0], "dim_model_base": [8], "n_shared_experts": [1], "shared_expert_intermediate_size": [16], "first_k_dense_replace": [1], "routed_scaling_factor": [2.0],
    "scoring_func": ["sigmoid"], "attention_out_bias": [True], "use_parallel_residual": [True], "per_layer_config": [{"0": {"num_attention_heads": 2}}], "nothing_like_it": [1, "x", [1], {"a": 1}],
    "mm_tokens_per_image": [4], "boi_token_index": [5], "eoi_token_index": [5], "image_token_index": [3], "vision_config": [{"hidden_size": 16}], "text_config": [{}], "quantization_config": [None],
}

# Those that only one family reads, tried on its bases alone.
FALCON = {"multi_query": [True, False], "new_decoder_architecture": [True, False], "parallel_attn": [True, False], "num_ln_in_parallel_attn": [1, 2, None],
          "bias": [True, False], "alibi": [True, False], "activation": ["gelu", "relu", "gelu_new", "gelu_pytorch_tanh", "silu", None],
          "num_kv_heads": [1, 2, 4, None], "ffn_hidden_size": [None, 128], "n_embed": [32, 64], "ffn_factor": [2],
          "apply_residual_connection_post_layernorm": [True], "hidden_dropout": [0.5]}
OWN_VALUES = {"falcon": FALCON,
              "gpt_neox": {"rotary_pct": [0.25, 0.5, 1.0, None], "rotary_emb_base": [50.0, 50, None, "x"], "rotary_dim": [4], "use_parallel_residual": [True, False],
                           "hidden_dropout": [0.5], "classifier_dropout": [0.5], "is_decoder": [True]}}


def values_of(config, key):
    return OWN_VALUES.get(config.get("model_type"), {}).get(key, VALUES.get(key, []))


def escaped(key):
    return key.replace("~", "~0").replace("/", "~1")


def applied(config, patch):
    config = copy.deepcopy(config)
    for path, *value in patch:
        *parents, last = [p.replace("~1", "/").replace("~0", "~") for p in path.split("/")[1:]]
        at = config
        for p in parents:
            at = at[p]
        if value:
            at[last] = value[0]
        else:
            del at[last]
    return config


def others(key, value):
    """Values that differ from the one that is there."""
    if isinstance(value, bool):
        return [not value, "x"]
    if isinstance(value, int):
        return [value + 1, value * 2] if value < 1 << 20 else [value + 1]
    if isinstance(value, float):
        return [value * 2 + 0.1]
    return []


def changes_of(config, prefix=""):
    """One patch for each way to change one key."""
    out = []
    for key, value in config.items():
        path = f"{prefix}/{escaped(key)}"
        out.append([[path]])
        values = others(key, value) + (values_of(config, key) if prefix in ("", "/text_config") else [])
        if key == "model_type" and "hidden_size" not in config:
            values = ["nothing"]  # the sizes of another family would be its default ones
        if value is not None:
            values.append(None)
        if isinstance(value, list) and value and all(isinstance(v, float) for v in value):
            values += [[v * 2 for v in value], value[:-1], []]
        out += [[[path, v]] for v in values if v != value or type(v) is not type(value)]
        if isinstance(value, dict) and key not in ("vision_config", "quantization_config"):
            out += changes_of(value, path)
    return out


def additions_to(config, prefix=""):
    out = []
    for key in dict.fromkeys([*VALUES, *SHAPES, *OWN_VALUES.get(config.get("model_type"), {})]):
        if key in config:
            continue
        values = values_of(config, key) or [4, 32]
        if key == "model_type" or (key == "text_config" and prefix):
            continue
        out += [[[f"{prefix}/{escaped(key)}", v]] for v in values]
    return out


def unique(patches):
    seen, out = set(), []
    for p in patches:
        text = json.dumps(p, sort_keys=True)
        if text not in seen:
            seen.add(text)
            out.append(p)
    return out


def form5(config):
    """The same configuration as transformers 5 writes it: everything about positions in rope_parameters."""
    config = copy.deepcopy(config)
    if "rope_theta" not in config:
        return None
    rope = dict(config.pop("rope_scaling", None) or {})
    theta = config.pop("rope_theta")
    for older in ("rotary_emb_base", "rotary_pct"):  # of gpt_neox, whose rope_theta and partial_rotary_factor say the same
        config.pop(older, None)
    if "rope_local_base_freq" in config:
        config["rope_parameters"] = {"full_attention": dict({"rope_type": "default"}, **rope, rope_theta=theta),
                                     "sliding_attention": {"rope_type": "default", "rope_theta": config.pop("rope_local_base_freq")}}
        return config
    rope.setdefault("rope_type", rope.get("type", "default"))
    rope["rope_theta"] = theta
    if "partial_rotary_factor" in config:
        rope["partial_rotary_factor"] = config.get("partial_rotary_factor")
    config["rope_parameters"] = rope
    return config


POSITIONS = ("tie_word_embeddings", "text_config", "rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor", "original_max_position_embeddings", "rope_local_base_freq", "max_position_embeddings")
OWN_POSITIONS = {"gpt_neox": ("rotary_pct", "rotary_emb_base"), "falcon": ("alibi",)}


def about_positions(config, patches):
    keys = POSITIONS + OWN_POSITIONS.get(config.get("model_type"), ())
    return [p for p in patches if any(step[0].split("/")[1] in keys for step in p)]


def drawn(rng, patches, pairs):
    """Fresh cases: two or three changes at once, with numbers drawn anew."""
    out = []
    while len(out) < pairs:
        chosen = rng.sample(patches, rng.choice((1, 2, 2, 3)))
        paths = [step[0] for patch in chosen for step in patch]
        if any(a != b and (b + "/").startswith(a + "/") for a in paths for b in paths) or len(set(paths)) < len(paths):
            continue
        patch = copy.deepcopy([step for p in chosen for step in p])
        for step in patch:
            if isinstance(step[-1], float):
                step[-1] = round(step[-1] * rng.uniform(0.3, 3), 4)
        out.append(patch)
    return out


def make_cases(args):
    rng = random.Random(args.seed)
    out = {"seed": args.seed, "rows": ROWS, "bases": []}
    for model in args.bases or BASES:
        config = json.loads((MODELS / model / "config.json").read_text())
        nested = "text_config" in config
        patches = changes_of(config) + additions_to(config) + (additions_to(config["text_config"], "/text_config") if nested else [])
        if model in VARIANTS:
            patches = about_positions(config, patches)
        bases = [(config, unique([[]] + patches), (4, 5))]
        new = form5(config)
        if new and model not in ("llama_linear_rope", "llama_gqa_tied", "qwen2_window", "gemma2"):
            bases.append((new, unique([[]] + about_positions(new, changes_of(new) + additions_to(new))), (5,)))
        for form, cases, versions in bases:
            if args.seed is not None:
                cases = [[]] + drawn(rng, cases[1:], args.pairs)
            first = 4 if model.startswith("gemma3") else 0  # below are tokens that stand for images
            prompt = [rng.randrange(first, 128) if args.seed is not None else first + (7 + 37 * i + i * i // 3) % (128 - first) for i in range(PROMPT)]
            out["bases"].append({"name": f"{model}_{'as' if form is config else 'new'}", "model": model, "config": form, "versions": versions, "prompt": prompt,
                                 "cases": [{"patch": p} for p in cases]})
    args.folder.mkdir(parents=True, exist_ok=True)
    write(args.folder, out)
    print(sum(len(b["cases"]) for b in out["bases"]), "cases")


def write(folder, cases):
    lines = []
    for base in cases["bases"]:
        head = {k: v for k, v in base.items() if k != "cases"}
        lines.append(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c) for c in base["cases"]) + "]}")
    head = {k: v for k, v in cases.items() if k != "bases"}
    (folder / "cases.json").write_text(json.dumps(head)[:-1] + ', "bases": [\n' + ",\n".join(lines) + "]}\n")


def logits_of(transformers, torch, folder, config, prompt, vocabulary):
    """Those of ROWS; None where there are none."""
    (folder / "config.json").write_text(json.dumps(config))
    how = "sdpa" if config.get("alibi") else "eager"  # Falcon's eager attention adds the slopes twice
    try:
        model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation=how, dtype=torch.float32, output_loading_info=True)
        if any(k for k in info["missing_keys"]) or info["mismatched_keys"] or info.get("error_msgs"):
            return None  # weights that are missing are made up
        with torch.no_grad():
            out = model.eval()(torch.tensor([prompt]), use_cache=False, return_dict=True).logits[0].float()
        if out.shape != (len(prompt), vocabulary):
            return None
        out = out[list(ROWS)].flatten()
        return out if torch.isfinite(out).all() else None
    except Exception:  # any: that is the answer
        return None


def names_new_form(config):
    """4.57 does not know these keys, and computes as if they were not there."""
    return "rope_parameters" in config or "rope_parameters" in (config.get("text_config") or {})


def expect(args):
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    sys.path.remove(str(Path(__file__).resolve().parent))  # a script here may have the name of a package
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # a configuration without sizes may mean billions of parameters
    transformers.logging.set_verbosity(50)
    transformers.logging.disable_progress_bar()
    version = int(transformers.__version__.split(".")[0])
    cases = json.loads((args.folder / "cases.json").read_text())
    cases[f"transformers{version}"] = transformers.__version__
    kept = args.folder / "model.safetensors"
    tensors = load_file(kept) if kept.exists() else {}
    for base in cases["bases"]:
        if version not in base["versions"] or version in base.setdefault("asked", []):
            continue
        base["asked"].append(version)
        rows = list(tensors[base["name"]]) if base["name"] in tensors else []
        vocabulary = base["config"].get("text_config", base["config"])["vocab_size"]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            for file in (MODELS / base["model"]).iterdir():
                if file.name != "config.json":
                    os.symlink(file, folder / file.name)
            for case in base["cases"]:
                config = applied(base["config"], case["patch"])
                got = None if version == 4 and names_new_form(config) else logits_of(transformers, torch, folder, config, base["prompt"], vocabulary)
                if got is None:
                    continue
                reach = max((got.max() - got.min()).item(), 1e-6)
                at = next((i for i, r in enumerate(rows) if r.shape == got.shape and (r - got).abs().max().item() < 1e-6 * reach), len(rows))
                if at == len(rows):
                    rows.append(got)
                if at != case.get("v5"):
                    case[f"v{version}"] = at
        if version == 4 and "v4" in base["cases"][0]:  # 4.57 computes another model of this base
            for case in base["cases"]:
                case.pop("v4", None)
        tensors[base["name"]] = torch.stack(rows).contiguous()
        print(base["name"], len(base["cases"]), "cases,", len(rows), "different results", flush=True)
        save_file(tensors, kept)
        write(args.folder, cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("cases", "expect"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, help="draws fresh cases")
    parser.add_argument("--pairs", type=int, default=60, help="of each base, with a seed (60)")
    parser.add_argument("--bases", nargs="*", help="models of tests/golden/models (all of the families)")
    args = parser.parse_args()
    make_cases(args) if args.step == "cases" else expect(args)


if __name__ == "__main__":
    main()
