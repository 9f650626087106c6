#!/usr/bin/env python3
"""Writes gguf/<case>.gguf from models/<case>: the same small models with the keys, the tensors' names and the order of
rows that llama.cpp's convert_hf_to_gguf.py gives them. Names come from the `gguf` package.

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 && venv/bin/python tests/golden/make_gguf_goldens.py
"""
import json
import pathlib

import gguf
import numpy as np

HERE = pathlib.Path(__file__).parent
Arch = gguf.MODEL_ARCH
CASES = {
    "gpt_neox": Arch.GPTNEOX, "falcon": Arch.FALCON, "falcon_grouped": Arch.FALCON,
    "falcon_one_norm": Arch.FALCON, "stablelm": Arch.STABLELM, "stablelm_parallel": Arch.STABLELM, "phi": Arch.PHI2,
    "starcoder2": Arch.STARCODER2, "cohere": Arch.COMMAND_R, "cohere2": Arch.COHERE2, "olmo2": Arch.OLMO2,
    "granite": Arch.GRANITE, "smollm3": Arch.SMOLLM3, "qwen2_moe": Arch.QWEN2MOE,
}


def tensors_of(folder):
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, t in json.loads(data[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + at for at in t["data_offsets"])
            assert t["dtype"] == "F32", (path, name, t["dtype"])
            yield name, np.frombuffer(data[begin:end], np.float32).reshape(t["shape"])


def in_pairs(values, heads):
    rows = values.shape[0]
    return values.reshape(heads, 2, rows // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def parted(values, heads, kv_heads):
    """All of q, then k, then v, of rows that are (kv head, its queries, key and value)."""
    per = heads // kv_heads
    grouped = values.reshape(kv_heads, per + 2, -1, *values.shape[1:])
    parts = (grouped[:, :per], grouped[:, per:per + 1], grouped[:, per + 1:])
    return np.concatenate([p.reshape(-1, *values.shape[1:]) for p in parts])


def add_keys(w, arch, c):
    heads, hidden = c["num_attention_heads"], c["hidden_size"]
    kv_heads = c.get("num_key_value_heads", heads)
    if arch == Arch.FALCON:
        kv_heads = c["num_kv_heads"] if c["new_decoder_architecture"] else 1
        w.add_tensor_data_layout("jploski")
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(hidden)
    w.add_block_count(c["num_hidden_layers"])
    w.add_feed_forward_length(c.get("intermediate_size", c.get("ffn_hidden_size")))
    w.add_head_count(heads)
    if arch != Arch.GPTNEOX:
        w.add_head_count_kv(kv_heads)
    if "rms_norm_eps" in c:
        w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    else:
        w.add_layer_norm_eps(next(c[k] for k in ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon") if k in c))
    if arch in (Arch.GPTNEOX, Arch.STABLELM, Arch.PHI2):
        part = c.get("rotary_pct", c.get("partial_rotary_factor"))
        w.add_rope_dimension_count(int(part * (hidden // heads)))
    else:
        w.add_rope_freq_base(c["rope_theta"])
    if arch in (Arch.GPTNEOX, Arch.STABLELM):
        w.add_parallel_residual(c["use_parallel_residual"])
    if arch in (Arch.COMMAND_R, Arch.COHERE2):
        w.add_logit_scale(c["logit_scale"])
    if arch in (Arch.COHERE2, Arch.STARCODER2):
        w.add_sliding_window(c["sliding_window"])
    if arch == Arch.GRANITE:
        w.add_attention_scale(c["attention_multiplier"])
        w.add_embedding_scale(c["embedding_multiplier"])
        w.add_residual_scale(c["residual_multiplier"])
        w.add_logit_scale(c["logits_scaling"])
    if arch == Arch.QWEN2MOE:
        w.add_expert_count(c["num_experts"])
        w.add_expert_used_count(c["num_experts_per_tok"])
        w.add_expert_feed_forward_length(c["moe_intermediate_size"])
        w.add_expert_shared_feed_forward_length(c["shared_expert_intermediate_size"])
    return heads, kv_heads


def write(case, arch):
    folder = HERE / "models" / case
    config = json.loads((folder / "config.json").read_text())
    names = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    w = gguf.GGUFWriter(HERE / "gguf" / f"{case}.gguf", gguf.MODEL_ARCH_NAMES[arch])
    heads, kv_heads = add_keys(w, arch, config)
    experts = {}
    for name, values in tensors_of(folder):
        if ".experts." in name:
            before, after = name.split(".experts.")
            number, matrix = after.split(".", 1)
            experts.setdefault(f"{before}.experts.{matrix}", {})[int(number)] = values
            continue
        if arch in (Arch.GRANITE, Arch.SMOLLM3) and ("q_proj" in name or "k_proj" in name):
            values = in_pairs(values, heads if "q_proj" in name else kv_heads)
        if "query_key_value" in name:
            values = parted(values, heads, kv_heads)
        add(w, names, name, values.squeeze())
    for name, of_each in experts.items():
        add(w, names, name, np.stack([of_each[i] for i in range(len(of_each))]))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def add(w, names, name, values):
    ours = names.get_name(name, try_suffixes=(".weight", ".bias"))
    if not ours:  # a dense layer among those of experts, which no published model has
        ours = gguf.get_tensor_name_map(Arch.QWEN2, 16).get_name(name, try_suffixes=(".weight", ".bias"))
    assert ours, name
    w.add_tensor(ours, np.ascontiguousarray(values))


def raw_tensors(folder):
    data = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in t["data_offsets"])
            kind = {"BF16": np.uint16, "U8": np.uint8}[t["dtype"]]
            yield name, np.frombuffer(data[begin:end], kind).reshape(t["shape"])


def write_gpt_oss():
    """Experts in MXFP4, gate and up apart: a block is its scale, then numbers j and j + 16 in the halves of byte j."""
    kinds = gguf.GGMLQuantizationType
    c = json.loads((HERE / "models/gpt_oss_mxfp4/config.json").read_text())
    names = gguf.get_tensor_name_map(Arch.GPT_OSS, c["num_hidden_layers"])
    w = gguf.GGUFWriter(HERE / "gguf/gpt_oss_mxfp4.gguf", gguf.MODEL_ARCH_NAMES[Arch.GPT_OSS])
    add_keys(w, Arch.GPT_OSS, c)
    w.add_key_length(c["head_dim"])
    w.add_value_length(c["head_dim"])
    w.add_expert_count(c["num_local_experts"])
    w.add_expert_used_count(c["num_experts_per_tok"])
    w.add_expert_feed_forward_length(c["intermediate_size"])
    w.add_sliding_window(c["sliding_window"])
    w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    w.add_rope_scaling_factor(c["rope_scaling"]["factor"])
    w.add_rope_scaling_orig_ctx_len(c["rope_scaling"]["original_max_position_embeddings"])
    w.add_rope_scaling_yarn_beta_fast(c["rope_scaling"]["beta_fast"])
    tensors = dict(raw_tensors(HERE / "models/gpt_oss_mxfp4"))

    def put(name, values):
        if "gate_up_proj" in name:  # rows in turn
            put(name.replace("gate_up_proj", "gate_proj"), values[:, 0::2])
            return put(name.replace("gate_up_proj", "up_proj"), values[:, 1::2])
        ending = ".bias" if name.endswith(("bias", "_bias")) else ".weight"
        ours = names.get_name(name.removesuffix("_bias").removesuffix(".bias").removesuffix(".weight")) + ending
        if values.dtype == np.uint8:
            return w.add_tensor(ours, np.ascontiguousarray(values.reshape(*values.shape[:2], -1)), raw_dtype=kinds.MXFP4)
        if values.ndim == 1 or ending == ".bias":
            return w.add_tensor(ours, (values.astype(np.uint32) << 16).view(np.float32))
        w.add_tensor(ours, np.ascontiguousarray(values).view(np.uint8), raw_dtype=kinds.BF16)

    for name, values in tensors.items():
        if name.endswith("_scales"):
            continue
        if name.endswith("_blocks"):
            name = name.removesuffix("_blocks")
            numbers = np.stack([values & 15, values >> 4], -1).reshape(*values.shape[:-1], 32)
            halves = numbers[..., :16] | numbers[..., 16:] << 4
            values = np.concatenate([tensors[name + "_scales"][..., None], halves], -1)
        put(name, values)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    (HERE / "gguf").mkdir(exist_ok=True)
    for each in CASES.items():
        write(*each)
    write_gpt_oss()
