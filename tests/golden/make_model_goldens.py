#!/usr/bin/env python3
"""Makes the golden files of the model families from Hugging Face transformers, on small random models.

  .venv-train/bin/python tests/golden/make_model_goldens.py [--keep] [CASE…]     (scripts/requirements-train.txt)

--keep computes prompts' answers anew for the weights that are there: bamba's are of transformers 5, which norms each of
its groups by itself, and gpt_oss's, since 4 does not read its limit (tests/random/requirements-transformers5.txt). For each case: models/<name>/ (config.json, safetensors), <name>.json (prompts and greedy ids) and
logits/<name>/model.safetensors (f32 logits of every position of each prompt, computed in float32).
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

HERE = Path(__file__).resolve().parent
LENGTHS = (1, 5, 17, 40)
GREEDY = 32
NO_TOKENS = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
LLAMA = dict(vocab_size=128, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, rms_norm_eps=1e-5, rope_theta=10000.0, initializer_range=0.2, tie_word_embeddings=False, **NO_TOKENS)
WIDE = dict(LLAMA, head_dim=32, num_attention_heads=2, num_key_value_heads=1)  # more frequencies, for their scalings
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)
GPT2 = dict(vocab_size=128, n_embd=32, n_layer=2, n_head=4, n_positions=128, initializer_range=0.2, **NO_TOKENS)
OPT = dict(vocab_size=128, hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, word_embed_proj_dim=32,
           init_std=0.2, **NO_TOKENS)
LONGROPE = dict(type="longrope", short_factor=[1.0, 1.5, 2.0, 3.0, 1.25, 2.5], long_factor=[4.0] * 6)
GEMMA = dict(LLAMA, head_dim=16, num_hidden_layers=3, tie_word_embeddings=True)
GEMMA2 = dict(GEMMA, sliding_window=8, query_pre_attn_scalar=24, attn_logit_softcapping=2.0, final_logit_softcapping=5.0)
GEMMA3 = dict(GEMMA, sliding_window=8, query_pre_attn_scalar=24, rope_local_base_freq=100.0, rope_scaling=dict(rope_type="linear", factor=8.0),
              layer_types=["sliding_attention", "full_attention", "sliding_attention"])
NEOX = dict(vocab_size=128, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, initializer_range=0.2, **NO_TOKENS)
FALCON = dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, initializer_range=0.2, **NO_TOKENS)
LAYER_NORM = {k: v for k, v in LLAMA.items() if k != "rms_norm_eps"}
BAMBA = dict(LLAMA, num_hidden_layers=4, attn_layer_indices=[2], mamba_n_heads=8, mamba_d_state=16, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=8)
VISION = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, image_size=14, patch_size=14)
CASES = {
    "mistral_window": ("mistral", dict(LLAMA, sliding_window=8, head_dim=16)),
    "llama_yarn": ("llama", dict(WIDE, rope_scaling=YARN)),
    "qwen2": ("qwen2", LLAMA),
    "qwen2_window": ("qwen2", dict(LLAMA, num_hidden_layers=3, use_sliding_window=True, sliding_window=8, max_window_layers=1, tie_word_embeddings=True)),
    "qwen3": ("qwen3", dict(LLAMA, head_dim=16, attention_bias=True, tie_word_embeddings=True)),
    "gpt2": ("gpt2", GPT2),
    "gpt2_scaled": ("gpt2", dict(GPT2, n_inner=48, activation_function="relu", scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False)),
    "opt": ("opt", OPT),
    "phi3": ("phi3", dict(LLAMA, sliding_window=12)),
    "phi3_longrope": ("phi3", dict(LLAMA, num_attention_heads=2, num_key_value_heads=1, partial_rotary_factor=0.75, rope_scaling=LONGROPE, original_max_position_embeddings=80, tie_word_embeddings=True)),
    "gemma": ("gemma", GEMMA),
    "gemma2": ("gemma2", GEMMA2),
    "gemma3": ("gemma3_text", GEMMA3),
    "gemma3_vision": ("gemma3", dict(text_config=dict(GEMMA3, num_hidden_layers=2, layer_types=GEMMA3["layer_types"][:2]), vision_config=VISION, mm_tokens_per_image=1,
                                     boi_token_index=1, eoi_token_index=2, image_token_index=3, initializer_range=0.2)),
    "mixtral": ("mixtral", dict(LLAMA, intermediate_size=24, num_local_experts=5, num_experts_per_tok=2, rope_theta=1e6)),
    "qwen3_moe": ("qwen3_moe", dict(LLAMA, head_dim=16, num_hidden_layers=3, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=16, norm_topk_prob=True)),
    "qwen3_moe_mixed": ("qwen3_moe", dict(LLAMA, head_dim=16, num_hidden_layers=3, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                                          norm_topk_prob=False, mlp_only_layers=[1])),
    "bamba": ("bamba", dict(BAMBA, mamba_n_groups=2)),
    "opt_post_norm": ("opt", dict(OPT, do_layer_norm_before=False, enable_bias=False)),
    "opt_projected": ("opt", dict(OPT, do_layer_norm_before=False, word_embed_proj_dim=16)),
    "gpt2_gelu": ("gpt2", dict(GPT2, activation_function="gelu")),
    "gpt2_silu": ("gpt2", dict(GPT2, activation_function="silu")),
    "gemma2_gelu": ("gemma2", dict(GEMMA2, hidden_activation="gelu")),
    "llama_dynamic": ("llama", dict(LLAMA, max_position_embeddings=16, rope_scaling=dict(rope_type="dynamic", factor=4.0))),
    "phi3_longrope_long": ("phi3", dict(LLAMA, num_attention_heads=2, num_key_value_heads=1, partial_rotary_factor=0.75, original_max_position_embeddings=16,
                                        rope_scaling=dict(LONGROPE, long_factor=[1.5, 2.0, 2.5, 3.0, 3.5, 4.0]))),
    "gpt_neox": ("gpt_neox", dict(NEOX, rotary_pct=0.5)),
    "gpt_neox_sequential": ("gpt_neox", dict(NEOX, rotary_pct=0.25, use_parallel_residual=False, attention_bias=False, hidden_act="gelu_new", tie_word_embeddings=True)),
    "falcon": ("falcon", FALCON),
    "falcon_alibi": ("falcon", dict(FALCON, hidden_size=48, num_attention_heads=6, alibi=True, multi_query=False, parallel_attn=False, bias=True)),
    "falcon_grouped": ("falcon", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2, ffn_hidden_size=56)),
    "falcon_one_norm": ("falcon", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, tie_word_embeddings=False)),
    "stablelm": ("stablelm", dict(LAYER_NORM, layer_norm_eps=1e-5, partial_rotary_factor=0.5, use_qkv_bias=True)),
    "stablelm_parallel": ("stablelm", dict(LAYER_NORM, layer_norm_eps=1e-5, partial_rotary_factor=0.25, use_parallel_residual=True)),
    "phi": ("phi", dict(LAYER_NORM, layer_norm_eps=1e-5, partial_rotary_factor=0.5)),
    "starcoder2": ("starcoder2", dict(LAYER_NORM, norm_epsilon=1e-5, sliding_window=8, tie_word_embeddings=True)),
    "cohere": ("cohere", dict(LAYER_NORM, layer_norm_eps=1e-5, logit_scale=0.25, tie_word_embeddings=True)),
    "cohere2": ("cohere2", dict(LAYER_NORM, num_hidden_layers=4, layer_norm_eps=1e-5, logit_scale=0.25, sliding_window=8, tie_word_embeddings=True)),
    "olmo2": ("olmo2", LLAMA),
    "granite": ("granite", dict(LLAMA, embedding_multiplier=2.0, residual_multiplier=0.7, attention_multiplier=0.2, logits_scaling=3.0)),
    "smollm3": ("smollm3", dict(LLAMA, num_hidden_layers=4, tie_word_embeddings=True)),
    "smollm3_windows": ("smollm3", dict(LLAMA, num_hidden_layers=3, no_rope_layers=[1, 0, 1], use_sliding_window=True, sliding_window=8, attention_bias=True, mlp_bias=True,
                                        layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "mistral3": ("mistral3", dict(text_config=dict(LLAMA, model_type="mistral", head_dim=16, sliding_window=None), vision_config=VISION | dict(head_dim=8, model_type="pixtral"),
                                  initializer_range=0.2)),
    "ministral": ("ministral", dict(LLAMA, num_hidden_layers=3, sliding_window=8, head_dim=16,
                                    layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "qwen2_moe": ("qwen2_moe", dict(LLAMA, num_hidden_layers=3, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=16, shared_expert_intermediate_size=24,
                                    mlp_only_layers=[1])),
    "gpt_oss": ("gpt_oss", dict(LLAMA, head_dim=16, num_hidden_layers=3, num_local_experts=6, num_experts_per_tok=3, intermediate_size=24, sliding_window=8, swiglu_limit=1.5,
                                rope_theta=150000.0, rope_scaling=dict(YARN, beta_fast=4.0, truncate=False))),
}
# Prompts of models whose frequencies depend on the length of the sequence, all within one set of them: those of 64 tokens,
# and of sequences past the original 16.
SPECIAL_LENGTHS = {"llama_dynamic": (16, 17, 24, 32), "phi3_longrope_long": (17, 20, 24, 32)}
LONGEST = 64
BARE = ("gpt2",)  # stored as of the bare model, whose tensors' names lack their first word, as the published GPT-2 is


@torch.no_grad()
def greedy(model, ids):
    """Greedy continuation and the smallest gap between the two highest logits, over the logits' range."""
    out, gap = list(ids), float("inf")
    for _ in range(GREEDY):
        logits = model(torch.tensor([out]), use_cache=False).logits[0, -1].float()
        top = logits.topk(2).values
        gap = min(gap, ((top[0] - top[1]) / (logits.max() - logits.min())).item())
        if gap < 1e-3:
            break
        out.append(int(logits.argmax()))
    return out[len(ids):], gap


def make(name, kind, settings, seed):
    torch.manual_seed(seed)
    settings = dict(settings)
    config = AutoConfig.for_model(kind, **settings)
    how = "sdpa" if name == "falcon_alibi" else "eager"  # Falcon's eager attention adds the slopes twice
    auto = AutoModelForImageTextToText if kind == "mistral3" else AutoModelForCausalLM
    model = auto.from_config(config, attn_implementation=how).float().eval()
    for parameter, p in model.named_parameters():  # norms and biases too, so that they matter
        if p.dim() == 1 or parameter.endswith("_bias"):
            p.data = p.data + 0.2 * torch.randn_like(p)
    return answered(name, model, kind, seed)


def kept(name, kind):
    model = AutoModelForCausalLM.from_pretrained(HERE / "models" / name, attn_implementation="eager").float().eval()
    return next(m for m in (answered(name, model, kind, seed) for seed in range(2000)) if m)


def answered(name, model, kind, seed):
    config = model.config
    if name in SPECIAL_LENGTHS:  # the frequencies that this leaves stay until a sequence is within the original range
        with torch.no_grad():
            model(torch.zeros((1, LONGEST), dtype=torch.long), use_cache=False)
    generator = torch.Generator().manual_seed(seed)
    first = 4 if kind == "gemma3" else 0  # after the tokens that stand for images
    prompts = [torch.randint(first, config.get_text_config().vocab_size, (n,), generator=generator).tolist() for n in SPECIAL_LENGTHS.get(name, LENGTHS)]
    answers = []
    for p in prompts:
        answers.append(greedy(model, p))
        if answers[-1][1] < 1e-3:
            return None
    return model, prompts, answers


def main():
    torch.set_num_threads(1)
    keep = "--keep" in sys.argv
    for name in [a for a in sys.argv[1:] if a != "--keep"] or CASES:
        kind, settings = CASES[name]
        model, prompts, answers = kept(name, kind) if keep else next(m for m in (make(name, kind, settings, seed) for seed in range(2000)) if m)
        folder = HERE / "models" / name
        if not keep:
            model.save_pretrained(folder)
            (folder / "generation_config.json").unlink(missing_ok=True)
        if name in BARE and not keep:
            save_file({k.split(".", 1)[1]: v.contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}, folder / "model.safetensors")
        with torch.no_grad():
            logits = {f"prompt{i}.logits": model(torch.tensor([p]), use_cache=False).logits[0].float().contiguous() for i, p in enumerate(prompts)}
        facts = {"made_by": "tests/golden/make_model_goldens.py", "smallest_gap": min(gap for _, gap in answers),
                 "prompts": [{"ids": p, "greedy_ids": ids} for p, (ids, _) in zip(prompts, answers)]}
        (HERE / "logits" / name).mkdir(parents=True, exist_ok=True)
        save_file(logits, HERE / "logits" / name / "model.safetensors")
        (HERE / f"{name}.json").write_text(json.dumps(facts) + "\n")
        print(f"{name}: smallest gap {facts['smallest_gap']:.4f}", flush=True)


if __name__ == "__main__":
    main()
