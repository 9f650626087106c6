#!/usr/bin/env python3
"""Turns a llama2.c checkpoint (float32, versions 0 and 1) and its tokenizer into a Hugging Face folder. Needs nothing
but Python.

  scripts/import_llama2c.py stories260K.bin --tokenizer tok512.model --out stories260K
  build/release/bin/patchbay generate --model stories260K --prompt "Once upon a time" --temperature 0

--tokenizer: a SentencePiece model, or the tokenizer.bin that llama2.c makes of one.
"""
import argparse
import json
import shutil
import struct
import sys
from pathlib import Path

MAGIC = 0x616B3432
EPSILON, THETA = 1e-5, 10000.0  # of all models that llama2.c runs


class Weights:
    """The file's numbers in turn, as bytes: nothing is computed with them."""

    def __init__(self, path: Path):
        self.path, self.data, self.at = path, path.read_bytes(), 0

    def ints(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}i", self.take(4 * count))

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            sys.exit(f"{self.path}: {size} bytes wanted at byte {self.at}, but the file has {len(self.data)}: it is no "
                     "float32 checkpoint of llama2.c, or it is truncated")
        self.at += size
        return self.data[self.at - size:self.at]

    def tensor(self, *shape: int) -> bytes:
        size = 4
        for n in shape:
            size *= n
        return self.take(size)


def halves(matrix: bytes, heads: int, head_dim: int) -> bytes:
    """Rows of q or k: llama2.c turns neighbours (2 i, 2 i + 1) of a head, Hugging Face (i, i + head_dim / 2)."""
    size = len(matrix) // (heads * head_dim)
    rows = [matrix[i:i + size] for i in range(0, len(matrix), size)]
    order = [h * head_dim + i for h in range(heads) for first in (0, 1) for i in range(first, head_dim, 2)]
    return b"".join(rows[i] for i in order)


def read_header(file: Weights) -> tuple[int, list[int], bool]:
    """version; dim, hidden, layers, heads, kv_heads, vocab, positions; whether the embedding is the head, too."""
    if struct.unpack_from("<I", file.data.ljust(4, b"\0"))[0] != MAGIC:
        shape = list(file.ints(7))
        shared = shape[5] > 0
        shape[5] = abs(shape[5])
        version = 0
    else:
        _, version, *shape = file.ints(9)
        shared = file.take(1) != b"\0"
        file.take(256 - file.at)
    if version > 1:
        sys.exit(f"{file.path} is of version {version}, expected 0 or 1 (version 2 is quantised: export the model as "
                 "float32)")
    dim, hidden, layers, heads, kv_heads, vocab, positions = shape
    if min(shape) < 1 or max(shape) > 1 << 24 or dim % heads or heads % kv_heads or dim // heads % 2:
        sys.exit(f"{file.path}: dim, hidden, layers, heads, kv_heads, vocab, positions are {shape}, which fit no model: "
                 "it is no checkpoint of llama2.c")
    return version, shape, shared


def read_tensors(file: Weights) -> tuple[dict, dict[str, tuple[list[int], bytes]]]:
    version, (dim, hidden, layers, heads, kv_heads, vocab, positions), shared = read_header(file)
    head_dim = dim // heads
    kv = kv_heads * head_dim
    out = {}

    def put(name: str, *shape: int, heads: int = 0) -> None:
        data = file.tensor(*shape)
        out[name] = (list(shape), halves(data, heads, head_dim) if heads else data)

    def layered(name: str, *shape: int, heads: int = 0) -> None:
        for i in range(layers):
            put(f"model.layers.{i}.{name}.weight", *shape, heads=heads)

    if version == 1:
        layered("input_layernorm", dim)
        layered("post_attention_layernorm", dim)
        put("model.norm.weight", dim)
    put("model.embed_tokens.weight", vocab, dim)
    if version == 0:
        layered("input_layernorm", dim)
    layered("self_attn.q_proj", dim, dim, heads=heads)
    layered("self_attn.k_proj", kv, dim, heads=kv_heads)
    layered("self_attn.v_proj", kv, dim)
    layered("self_attn.o_proj", dim, dim)
    if version == 0:
        layered("post_attention_layernorm", dim)
    layered("mlp.gate_proj", hidden, dim)
    layered("mlp.down_proj", dim, hidden)
    layered("mlp.up_proj", hidden, dim)
    if version == 0:
        put("model.norm.weight", dim)
        file.tensor(positions, head_dim)  # cosines and sines, which are computed
    if not shared:
        put("lm_head.weight", vocab, dim)
    if file.at != len(file.data):
        sys.exit(f"{file.path}: {len(file.data) - file.at} bytes are left over: it is no float32 checkpoint of llama2.c")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": dim,
              "intermediate_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
              "num_key_value_heads": kv_heads, "head_dim": head_dim, "vocab_size": vocab,
              "max_position_embeddings": positions, "rms_norm_eps": EPSILON, "rope_theta": THETA,
              "tie_word_embeddings": shared, "bos_token_id": 1, "eos_token_id": 2, "dtype": "float32"}
    return config, out


def write_safetensors(path: Path, tensors: dict[str, tuple[list[int], bytes]]) -> None:
    header, at = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            out.write(data)


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def message(field: int, data: bytes) -> bytes:  # of a protobuf
    return varint(field << 3 | 2) + varint(len(data)) + data


def sentencepiece_of(file: Path, vocab: int) -> bytes:
    """A SentencePiece model of llama2.c's tokenizer.bin: the longest piece, then score, length and bytes of each."""
    data, at, out = file.read_bytes(), 4, b""
    for i in range(vocab):
        if at + 8 > len(data):
            sys.exit(f"{file}: it ends before token {i} of the model's {vocab}")
        score, length = struct.unpack_from("<fi", data, at)
        piece = data[at + 8:at + 8 + length].strip(b"\n") if i in (1, 2) else data[at + 8:at + 8 + length]
        at += 8 + length
        is_byte = len(piece) == 6 and piece.startswith(b"<0x")
        kind = 2 if i == 0 else 3 if i < 3 else 6 if is_byte else 1  # unknown, control, byte, normal
        piece = piece.replace(b" ", "▁".encode())
        out += message(1, message(1, piece) + b"\x15" + struct.pack("<f", score) + b"\x18" + varint(kind))
    trainer = b"\x18" + varint(2) + varint(35 << 3) + varint(1)  # model_type BPE, byte_fallback
    normalizer = b"\x18" + varint(1) + b"\x20" + varint(0)       # add_dummy_prefix, no remove_extra_whitespaces
    return out + message(2, trainer) + message(3, normalizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--tokenizer", type=Path,
                        help="SentencePiece model or llama2.c's tokenizer.bin; none: token ids only")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    options = parser.parse_args()
    config, tensors = read_tensors(Weights(options.checkpoint))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write_safetensors(options.out / "model.safetensors", tensors)
    if options.tokenizer:
        target = options.out / "tokenizer.model"
        if options.tokenizer.suffix == ".bin":
            target.write_bytes(sentencepiece_of(options.tokenizer, config["vocab_size"]))
        else:
            shutil.copyfile(options.tokenizer, target)
        (options.out / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False,
                        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, indent=2) + "\n")
    numbers = sum(len(data) for _, data in tensors.values()) // 4
    print(f"{options.out}: {len(tensors)} tensors, {numbers:,} parameters")


if __name__ == "__main__":
    main()
