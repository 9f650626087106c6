#!/usr/bin/env python3
"""Makes the golden files of the llama model from Hugging Face transformers, on small random models.

  .venv-train/bin/python tests/golden/make_llama_goldens.py     (scripts/requirements-train.txt)

For each case: models/<name>/ (config.json, safetensors), <name>.json (prompts and greedy ids) and
logits/<name>/model.safetensors (f32 logits of every position of each prompt, computed in float32).
"""
import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

HERE = Path(__file__).resolve().parent
COMMON = dict(vocab_size=256, hidden_size=64, intermediate_size=112, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
              max_position_embeddings=256, rms_norm_eps=1e-5, rope_theta=10000.0, initializer_range=0.2, bos_token_id=None, eos_token_id=None,
              tie_word_embeddings=False)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
CASES = {
    "llama_mha": (LlamaConfig, {}),
    "llama_gqa_tied": (LlamaConfig, dict(num_key_value_heads=2, tie_word_embeddings=True)),
    # heads of 32, so that one frequency falls between the two cut-offs, where llama3 interpolates
    "llama3_rope": (LlamaConfig, dict(num_attention_heads=2, num_key_value_heads=1, rope_theta=500000.0, rope_scaling=LLAMA3)),
    "llama_linear_rope": (LlamaConfig, dict(rope_scaling=dict(rope_type="linear", factor=4.0))),
    "llama_head_dim": (LlamaConfig, dict(num_key_value_heads=2, head_dim=24)),
    "llama_bias": (LlamaConfig, dict(attention_bias=True, mlp_bias=True)),
    "mistral": (MistralConfig, dict(num_key_value_heads=2, sliding_window=None)),
    "llama_bf16": (LlamaConfig, dict(num_key_value_heads=2)),
    "llama_sharded": (LlamaConfig, dict(num_key_value_heads=2, tie_word_embeddings=True)),
}
LENGTHS = (1, 5, 17, 40, 64)
GREEDY = 32


class Bf16Cache(DynamicCache):
    """A KV cache in bf16 under a model that computes in float32."""

    def update(self, key_states, value_states, *rest, **named):
        return super().update(key_states.bfloat16().float(), value_states.bfloat16().float(), *rest, **named)


def interpolated(config):
    """How many rotary frequencies lie where llama3 scaling interpolates; with none, that code would go untested."""
    head_dim = config.hidden_size // config.num_attention_heads
    longest = config.rope_scaling["original_max_position_embeddings"]
    waves = [2 * math.pi * config.rope_theta ** (i / head_dim) for i in range(0, head_dim, 2)]
    return sum(longest / config.rope_scaling["high_freq_factor"] < w < longest / config.rope_scaling["low_freq_factor"] for w in waves)


def difference(got, expected):
    """The largest difference of logits over the range of the expected, over all prompts."""
    return max(((got[k] - x).abs().max() / (x.max() - x.min())).item() for k, x in expected.items())


@torch.no_grad()
def greedy(model, ids):
    """Greedy continuation and the smallest gap between the two highest logits, over the logits' range."""
    out, gap = list(ids), float("inf")
    for _ in range(GREEDY):
        logits = model(torch.tensor([out])).logits[0, -1].float()
        top = logits.topk(2).values
        gap = min(gap, ((top[0] - top[1]) / (logits.max() - logits.min())).item())
        out.append(int(logits.argmax()))
    return out[len(ids):], gap


def make(name, config_class, changes, seed):
    torch.manual_seed(seed)
    config = config_class(**{**COMMON, **changes})
    if name == "llama3_rope" and not interpolated(config):
        raise SystemExit("llama3_rope: no frequency is interpolated")
    model_class = MistralForCausalLM if config_class is MistralConfig else LlamaForCausalLM
    model = model_class(config).eval()
    for p in model.parameters():  # norms and biases too, so that they matter
        if p.dim() == 1:
            p.data = p.data + 0.2 * torch.randn_like(p)
    if name == "llama_bf16":
        model = model.to(torch.bfloat16)
    reference = model_class(config).eval()
    reference.load_state_dict({k: v.float() for k, v in model.state_dict().items()})
    generator = torch.Generator().manual_seed(seed)
    prompts = [torch.randint(0, config.vocab_size, (n,), generator=generator).tolist() for n in LENGTHS]
    answers = [greedy(reference, p) for p in prompts]
    if min(gap for _, gap in answers) < 1e-3:
        return None
    return model, reference, prompts, answers


def main():
    torch.set_num_threads(1)
    for name, (config_class, changes) in CASES.items():
        made = next(m for m in (make(name, config_class, changes, seed) for seed in range(1000)) if m)
        model, reference, prompts, answers = made
        folder = HERE / "models" / name
        model.save_pretrained(folder, **({"max_shard_size": "150KB"} if name == "llama_sharded" else {}))
        (folder / "generation_config.json").unlink(missing_ok=True)
        with torch.no_grad():
            logits = {f"prompt{i}.logits": reference(torch.tensor([p])).logits[0].float().contiguous() for i, p in enumerate(prompts)}
            facts = {"made_by": "tests/golden/make_llama_goldens.py", "smallest_gap": min(gap for _, gap in answers),
                     "prompts": [{"ids": p, "greedy_ids": ids} for p, (ids, _) in zip(prompts, answers)]}
            if name == "llama_bf16":  # how far bf16 is from float32: the whole computation, and K and V alone
                own = {k: model(torch.tensor([p])).logits[0].float() for k, p in zip(logits, prompts)}
                facts["bf16_difference_over_range"] = difference(own, logits)
                own = {k: reference(torch.tensor([p]), past_key_values=Bf16Cache()).logits[0] for k, p in zip(logits, prompts)}
                facts["bf16_kv_difference_over_range"] = difference(own, logits)
        (HERE / "logits" / name).mkdir(parents=True, exist_ok=True)
        save_file(logits, HERE / "logits" / name / "model.safetensors")
        (HERE / f"{name}.json").write_text(json.dumps(facts) + "\n")
        print(f"{name}: smallest gap {facts['smallest_gap']:.4f}", facts.get("bf16_difference_over_range", ""))


if __name__ == "__main__":
    main()
