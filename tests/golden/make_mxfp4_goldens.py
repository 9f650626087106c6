#!/usr/bin/env python3
"""Makes the golden files of a gpt-oss checkpoint with experts in MXFP4: random blocks and scales, with a config.json of
the published form, and what Hugging Face transformers computes in float32 with the numbers that it decodes them to.

  .venv-train/bin/python tests/golden/make_mxfp4_goldens.py     (tests/random/requirements-transformers5.txt)

Files as of make_packed_goldens.py.
"""
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from make_packed_goldens import LENGTHS, greedy

HERE = Path(__file__).resolve().parent
NAME = "gpt_oss_mxfp4"
YARN = dict(rope_type="yarn", factor=4.0, beta_fast=4.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=32)
SHAPE = dict(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_local_experts=4,
             num_experts_per_tok=2, sliding_window=8, max_position_embeddings=128, rms_norm_eps=1e-5, rope_theta=150000.0, rope_scaling=YARN, attention_bias=True,
             hidden_act="silu", swiglu_limit=7.0, initializer_range=0.2, tie_word_embeddings=False, layer_types=["sliding_attention", "full_attention"])
PUBLISHED = dict(SHAPE, architectures=["GptOssForCausalLM"], model_type="gpt_oss", attention_dropout=0.0, eos_token_id=None, pad_token_id=None, experts_per_token=2,
                 initial_context_length=32, output_router_logits=False, router_aux_loss_coef=0.9, use_cache=True, torch_dtype="bfloat16",
                 quantization_config=dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]))


@torch.no_grad()
def make(seed):
    torch.manual_seed(seed)
    config = AutoConfig.for_model("gpt_oss", bos_token_id=None, eos_token_id=None, pad_token_id=None, **SHAPE)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    tensors = {}
    for name, p in model.named_parameters():
        if name.endswith(("gate_up_proj", "down_proj")):  # (experts, in, out), stored as (experts, out, in / 32, 16)
            experts, inputs, outputs = p.shape
            blocks = torch.randint(0, 256, (experts, outputs, inputs // 32, 16), dtype=torch.uint8)
            scales = torch.randint(121, 125, blocks.shape[:-1], dtype=torch.uint8)
            tensors |= {name + "_blocks": blocks, name + "_scales": scales}
            p.copy_(convert_moe_packed_tensors(blocks, scales, dtype=torch.float32))
            continue
        if p.dim() == 1 or name.endswith("_bias"):
            p.add_(0.2 * torch.randn_like(p))
        tensors[name] = p.bfloat16()
        p.copy_(tensors[name].float())
    generator = torch.Generator().manual_seed(seed)
    prompts = [torch.randint(0, SHAPE["vocab_size"], (n,), generator=generator).tolist() for n in LENGTHS]
    answers = [greedy(model, p) for p in prompts]
    return (model, tensors, prompts, answers) if min(min(gaps) for _, gaps in answers) >= 1e-3 else None


def main():
    torch.set_num_threads(1)
    model, tensors, prompts, answers = next(m for m in map(make, range(2000)) if m)
    folder = HERE / "models" / NAME
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(PUBLISHED, indent=2, sort_keys=True) + "\n")
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    with torch.no_grad():
        logits = {f"prompt{i}.logits": model(torch.tensor([p]), use_cache=False).logits[0].float().contiguous() for i, p in enumerate(prompts)}
    facts = {"made_by": "tests/golden/make_mxfp4_goldens.py", "smallest_gap": min(min(gaps) for _, gaps in answers),
             "prompts": [{"ids": p, "greedy_ids": ids, "gaps": [round(g, 5) for g in gaps]} for p, (ids, gaps) in zip(prompts, answers)]}
    (HERE / "logits" / NAME).mkdir(parents=True, exist_ok=True)
    save_file(logits, HERE / "logits" / NAME / "model.safetensors")
    (HERE / f"{NAME}.json").write_text(json.dumps(facts) + "\n")
    print(f"{NAME}: smallest gap {facts['smallest_gap']:.4f}")


if __name__ == "__main__":
    main()
