#!/usr/bin/env python3
"""Trains an EAGLE head for the demo target: a folder that the proposer eagle takes, as bf16 safetensors.

The head learns, from a token and the target's hidden state before it, the hidden state that the target makes of that
token: by its distance, and by what the target's lm head makes of it (Li et al. 2024). The second half of the time it
also goes on from hidden states of its own, as it does when it drafts. With --steps runs can be repeated.

  .venv-train/bin/python scripts/train_demo_head.py --corpus childrens_classics.txt     (scripts/requirements-train.txt)
"""
import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

from train_demo_model import END, batch_of, clean


class Eagle(torch.nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.fc = torch.nn.Linear(2 * config.hidden_size, config.hidden_size)
        self.layers = torch.nn.ModuleList(LlamaDecoderLayer(config, i) for i in range(config.num_hidden_layers))
        self.layers[0].input_layernorm = torch.nn.Identity()
        self.rotary = LlamaRotaryEmbedding(config)

    def forward(self, embedded: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:  # (batch, n, hidden) each
        x = self.fc(torch.cat((embedded, hidden), dim=-1))
        turns = self.rotary(x, torch.arange(x.shape[1])[None])
        for layer in self.layers:
            out = layer(x, attention_mask=None, position_embeddings=turns)
            x = out[0] if isinstance(out, tuple) else out
        return x


def losses_of(target, made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    distance = torch.nn.functional.smooth_l1_loss(made, wanted)
    with torch.no_grad():
        says = target.lm_head(wanted).softmax(-1)
    agrees = -(says * target.lm_head(made).log_softmax(-1)).sum(-1).mean()
    return distance + agrees


def save(folder: Path, head: Eagle, config: LlamaConfig) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weights = {k: v.to(torch.bfloat16).contiguous() for k, v in head.state_dict().items() if not k.startswith("rotary")}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    keys = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "rope_theta", "hidden_act")
    facts = {"architectures": ["EagleLlamaForCausalLM"], "torch_dtype": "bfloat16", "bias": True}
    (folder / "config.json").write_text(json.dumps(facts | {k: getattr(config, k) for k in keys}, indent=2) + "\n")


@torch.no_grad()
def agreement(target, head: Eagle, ids: np.ndarray, drafts: int) -> list[float]:
    """Share of places where a draft is the target's first choice, once those before it are; by position."""
    rng = np.random.default_rng(5)
    right, tried = np.zeros(drafts), np.zeros(drafts)
    tokens = batch_of(ids, rng, 8, 255)
    hidden = target.model(tokens).last_hidden_state
    first = target.lm_head(hidden).argmax(-1)
    for at in range(60, 250 - drafts, 10):
        sofar = torch.cat((tokens[:, :at + 1], first[:, at:at + 1]), dim=1)  # the target's own next token
        features, alive, own = hidden[:, :at + 1], np.ones(len(tokens), dtype=bool), sofar
        for k in range(drafts):
            made = head(target.model.embed_tokens(own[:, 1:]), features)
            draft = target.lm_head(made[:, -1]).argmax(-1)
            says = target(own).logits[:, -1].argmax(-1)
            tried[k] += alive.sum()
            alive &= (draft == says).numpy()
            right[k] += alive.sum()
            own = torch.cat((own, draft[:, None]), dim=1)
            features = torch.cat((features, made[:, -1:]), dim=1)
    return [round(float(r / max(t, 1)), 3) for r, t in zip(right, tried)]


def main() -> int:
    repo = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="text, books parted by <|endoftext|>")
    parser.add_argument("--target", type=Path, default=repo / "models/demo-target")
    parser.add_argument("--out", type=Path, default=repo / "models/demo-eagle")
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--steps", type=int, default=0, help="a number of steps instead of a time (repeatable)")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--inner", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    target = AutoModelForCausalLM.from_pretrained(args.target).float().eval().requires_grad_(False)
    tokenizer = Tokenizer.from_file(str(args.target / "tokenizer.json"))
    train_ids, val_ids = [], []
    for book in clean(args.corpus.read_text(encoding="utf-8")):  # held out as the target's were
        ids = tokenizer.encode(book).ids
        cut = int(len(ids) * 0.98)
        train_ids += ids[:cut] + [tokenizer.token_to_id(END)]
        val_ids += ids[cut:] + [tokenizer.token_to_id(END)]
    train_ids, val_ids = np.array(train_ids, dtype=np.uint16), np.array(val_ids, dtype=np.uint16)

    t = target.config
    config = LlamaConfig(vocab_size=t.vocab_size, hidden_size=t.hidden_size, intermediate_size=args.inner,
                         num_hidden_layers=1, num_attention_heads=t.num_attention_heads,
                         num_key_value_heads=t.num_key_value_heads, rms_norm_eps=t.rms_norm_eps, rope_theta=10000.0,
                         max_position_embeddings=t.max_position_embeddings)
    config._attn_implementation = "sdpa"
    head = Eagle(config)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.01)
    start, step, recent = time.time(), 0, []
    while True:
        spent = time.time() - start
        part = step / args.steps if args.steps else spent / (60 * args.minutes)
        if part >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = 1.5e-3 * min(1.0, (step + 1) / 50) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * part)))
        tokens = batch_of(train_ids, rng, args.batch, args.length)
        with torch.no_grad():
            hidden = target.model(tokens).last_hidden_state
            embedded = target.model.embed_tokens(tokens)
        made = head(embedded[:, 1:], hidden[:, :-1])
        loss = losses_of(target, made, hidden[:, 1:])
        if part > 0.5:  # the hidden state of the token before is the head's own
            own = torch.cat((hidden[:, :1], made[:, :-1].detach()), dim=1)
            loss = (loss + losses_of(target, head(embedded[:, 1:], own), hidden[:, 1:])) / 2
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        step += 1
        recent = (recent + [loss.item()])[-50:]
        if step % 50 == 0:
            print(f"step {step}  loss {np.mean(recent):.3f}  {100 * part:.0f} %", flush=True)
        if step % 200 == 0:
            save(args.out, head, config)
    save(args.out, head, config)
    facts = {"steps": step, "loss": round(float(np.mean(recent)), 4), "minutes": round((time.time() - start) / 60, 1),
             "parameters": sum(p.numel() for p in head.parameters()),
             "held_out_agreement": agreement(target, head, val_ids, 4)}
    (args.out / "training.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(facts), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
