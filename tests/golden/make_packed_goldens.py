#!/usr/bin/env python3
"""Makes golden files of AWQ, GPTQ, compressed-tensors and fp8 checkpoints: small random Llamas whose linears are rounded
here and packed as the formats have them (compressed-tensors' by that library, version 0.20), and what Hugging Face
transformers computes with the numbers that they stand for.

  .venv-train/bin/python tests/golden/make_packed_goldens.py [CASE…]     (scripts/requirements-train.txt)

Files as of make_model_goldens.py; "gaps" of a prompt are those between the two highest logits of each greedy step,
over the logits' range.
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

HERE = Path(__file__).resolve().parent
LENGTHS = (1, 5, 17, 40)
GREEDY = 32
LLAMA = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, rms_norm_eps=1e-5, rope_theta=10000.0, initializer_range=0.2, tie_word_embeddings=False,
             bos_token_id=None, eos_token_id=None, pad_token_id=None)
AWQ = dict(quant_method="awq", version="gemm", bits=4, zero_point=True)
GPTQ = dict(quant_method="gptq", bits=4, sym=True, desc_act=False)


def compressed(form, **weights):
    return dict(quant_method="compressed-tensors", format=form, quantization_status="compressed", ignore=["lm_head"],
                config_groups=dict(group_0=dict(targets=["Linear"], weights=weights)))


CASES = {
    "llama_awq": (LLAMA, dict(AWQ, group_size=32, modules_to_not_convert=["model.layers.0.self_attn.o_proj"])),
    "llama_gptq": (dict(LLAMA, attention_bias=True), dict(GPTQ, group_size=64)),
    "llama_gptq_act": (LLAMA, dict(GPTQ, group_size=32, sym=False, desc_act=True, checkpoint_format="gptq_v2")),
    "llama_gptq_int8": (LLAMA, dict(GPTQ, bits=8, group_size=-1, sym=False)),
    "llama_compressed_int4": (LLAMA, compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, symmetric=True)),
    "llama_compressed_zero": (dict(LLAMA, attention_bias=True), compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=16, symmetric=False)),
    "llama_compressed_int8": (LLAMA, compressed("int-quantized", num_bits=8, type="int", strategy="channel", symmetric=True)),
    "llama_compressed_fp8": (LLAMA, compressed("float-quantized", num_bits=8, type="float", strategy="channel", symmetric=True)),
    "llama_fp8": (LLAMA, dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[24, 16],
                              modules_to_not_convert=["model.layers.1.mlp.down_proj"])),
}
FIRST_SEED = {"llama_compressed_zero": 100, "llama_compressed_int8": 100}  # of models that rounded activations change less
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # the number that each place of a word holds


def rounded(weight, settings, groups):
    """weight (in, out): numbers (in, out), zero points and scales (groups, out), and the numbers that they stand for."""
    most = 2 ** settings["bits"] - 1
    count = groups.max() + 1
    zeros = np.zeros((count, weight.shape[1]), np.int64)
    scales = np.zeros((count, weight.shape[1]), np.float16)
    for g in range(count):
        rows = weight[groups == g]
        if settings.get("sym"):
            scales[g] = np.maximum(2 * np.abs(rows).max(0) / most, 1e-4)
            zeros[g] = (most + 1) // 2
        else:
            low, high = np.minimum(rows.min(0), -1e-3), np.maximum(rows.max(0), 1e-3)
            scales[g] = (high - low) / most
            zeros[g] = np.clip(np.rint(-low / scales[g].astype(np.float32)), 1, most)
    scale = scales.astype(np.float32)[groups]
    numbers = np.clip(np.rint(weight / scale) + zeros[groups], 0, most).astype(np.int64)
    return numbers, zeros, scales, (numbers - zeros[groups]).astype(np.float32) * scale


def packed(numbers, bits, order):
    """Words of 32 bits along the last dimension, the first number in the lowest bits."""
    per_word = 32 // bits
    parts = numbers.reshape(*numbers.shape[:-1], -1, per_word).astype(np.uint64)
    words = sum(parts[..., number] << np.uint64(bits * place) for place, number in enumerate(order))
    return words.astype(np.uint32).view(np.int32)


def in_fp8(weight, rows, cols, kind):
    """weight (out, in) with a scale for each block, in f32 as DeepSeek's (kind "scale_inv") or in f16."""
    weight = torch.from_numpy(weight)
    codes, meant = torch.empty(weight.shape, dtype=torch.float8_e4m3fn), torch.empty_like(weight)
    scales = torch.empty(-(-weight.shape[0] // rows), -(-weight.shape[1] // cols))
    for r in range(scales.shape[0]):
        for c in range(scales.shape[1]):
            at = (slice(r * rows, (r + 1) * rows), slice(c * cols, (c + 1) * cols))
            scale = weight[at].abs().max() / 448
            scales[r, c] = scale if kind == "scale_inv" else scale.half().float()
            codes[at] = (weight[at] / scales[r, c]).clamp(-448, 448).to(torch.float8_e4m3fn)
            meant[at] = codes[at].float() * scales[r, c]
    return {"weight": codes, f"weight_{kind}": scales if kind == "scale_inv" else scales.half()}, meant.numpy()


def in_integers(weight, settings):
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
    how = settings["config_groups"]["group_0"]["weights"]
    bits, size = how["num_bits"], how.get("group_size", weight.shape[1])
    half = 2 ** (bits - 1)
    groups = torch.from_numpy(weight).reshape(weight.shape[0], -1, size)
    if how["symmetric"]:
        scales, zeros = (groups.abs().amax(2) / (half - 1)).half(), None
        shift = torch.zeros_like(scales.float())
    else:
        low, high = groups.amin(2).clamp(max=-1e-3), groups.amax(2).clamp(min=1e-3)
        scales = ((high - low) / (2 * half - 1)).half()
        shift = (-low / scales.float()).round().clamp(0, 2 * half - 1) - half
        zeros = shift.to(torch.int8)
    scale = scales.float()[..., None]
    codes = ((groups / scale).round() + shift[..., None]).clamp(-half, half - 1)
    meant = ((codes - shift[..., None]) * scale).reshape(weight.shape).numpy()
    codes = codes.reshape(weight.shape).to(torch.int8)
    if settings["format"] == "int-quantized":
        return {"weight": codes, "weight_scale": scales}, meant
    tensors = {"weight_packed": pack_to_int32(codes, bits), "weight_scale": scales, "weight_shape": torch.tensor(weight.shape)}
    if zeros is not None:
        tensors["weight_zero_point"] = pack_to_int32(zeros, bits, packed_dim=0)
    return tensors, meant


def pack(weight, settings, order):
    """weight (out, in). Tensors of the linear, and the weight that they stand for. order: of the columns by groups."""
    if settings["quant_method"] == "fp8":
        return in_fp8(weight, *settings["weight_block_size"], "scale_inv")
    if settings["quant_method"] == "compressed-tensors":
        floats = settings["format"] == "float-quantized"
        return in_fp8(weight, 1, weight.shape[1], "scale") if floats else in_integers(weight, settings)
    columns, bits = weight.shape[1], settings["bits"]
    size = columns if settings["group_size"] == -1 else settings["group_size"]
    groups = np.empty(columns, np.int64)
    groups[order] = np.arange(columns) // size
    numbers, zeros, scales, meant = rounded(weight.T, settings, groups)
    if settings["quant_method"] == "awq":
        tensors = {"qweight": packed(numbers, bits, AWQ_ORDER), "qzeros": packed(zeros, bits, AWQ_ORDER), "scales": scales}
    else:
        straight = range(32 // bits)
        short = 0 if settings.get("checkpoint_format") == "gptq_v2" else 1
        tensors = {"qweight": packed(numbers.T, bits, straight).T, "qzeros": packed(zeros - short, bits, straight),
                   "scales": scales, "g_idx": groups.astype(np.int32)}
    return {name: np.ascontiguousarray(t) for name, t in tensors.items()}, np.ascontiguousarray(meant.T)


@torch.no_grad()
def greedy(model, ids):
    out, gaps = list(ids), []
    for _ in range(GREEDY):
        logits = model(torch.tensor([out]), use_cache=False).logits[0, -1].float()
        top = logits.topk(2).values
        gaps.append(((top[0] - top[1]) / (logits.max() - logits.min())).item())
        out.append(int(logits.argmax()))
    return out[len(ids):], gaps


@torch.no_grad()
def make(shape, settings, seed):
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    config = AutoConfig.for_model("llama", **shape)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    tensors, orders = {}, {}
    for name, p in model.named_parameters():
        module, kind = name.rsplit(".", 1)
        if p.dim() == 1:
            p.add_(0.2 * torch.randn_like(p))
        if p.dim() == 2 and ".layers." in name and module not in settings.get("modules_to_not_convert", ()):
            inputs = module.rsplit(".", 1)[0] + str(p.shape[1]) + str("o_proj" in module)  # q, k and v have the same
            if inputs not in orders:
                orders[inputs] = random.permutation(p.shape[1]) if settings.get("desc_act") else np.arange(p.shape[1])
            parts, meant = pack(p.numpy(), settings, orders[inputs])
            tensors |= {f"{module}.{part}": values for part, values in parts.items()}
            p.copy_(torch.from_numpy(meant))
        else:
            tensors[name] = p.numpy().astype(np.float16)
            p.copy_(torch.from_numpy(tensors[name].astype(np.float32)))
    generator = torch.Generator().manual_seed(seed)
    prompts = [torch.randint(0, shape["vocab_size"], (n,), generator=generator).tolist() for n in LENGTHS]
    answers = [greedy(model, p) for p in prompts]
    if min(min(gaps) for _, gaps in answers) < 1e-3:
        return None
    return model, tensors, prompts, answers


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or CASES:
        shape, settings = CASES[name]
        model, tensors, prompts, answers = next(m for m in (make(shape, settings, seed) for seed in range(FIRST_SEED.get(name, 0), 2000)) if m)
        folder = HERE / "models" / name
        folder.mkdir(parents=True, exist_ok=True)
        config = model.config.to_dict() | {"architectures": ["LlamaForCausalLM"], "dtype": "float16", "quantization_config": settings}
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        tensors = {name: t.contiguous() if torch.is_tensor(t) else torch.from_numpy(t) for name, t in tensors.items()}
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        with torch.no_grad():
            logits = {f"prompt{i}.logits": model(torch.tensor([p]), use_cache=False).logits[0].float().contiguous() for i, p in enumerate(prompts)}
        facts = {"made_by": "tests/golden/make_packed_goldens.py", "smallest_gap": min(min(gaps) for _, gaps in answers),
                 "prompts": [{"ids": p, "greedy_ids": ids, "gaps": [round(g, 5) for g in gaps]} for p, (ids, gaps) in zip(prompts, answers)]}
        (HERE / "logits" / name).mkdir(parents=True, exist_ok=True)
        save_file(logits, HERE / "logits" / name / "model.safetensors")
        (HERE / f"{name}.json").write_text(json.dumps(facts) + "\n")
        print(f"{name}: smallest gap {facts['smallest_gap']:.4f}", flush=True)


if __name__ == "__main__":
    main()
