#!/usr/bin/env python3
"""Trains the demo models: a byte-level BPE tokenizer, a target and a draft Llama, as bf16 Hugging Face folders.

Everything is seeded. With --steps the same corpus, versions, processor and number of threads give the same models. With
--minutes (the default) the schedule follows the clock, so that no two runs are equal.

  python3 -m venv .venv-train && .venv-train/bin/pip install -r scripts/requirements-train.txt
  .venv-train/bin/python scripts/train_demo_model.py --corpus childrens_classics.txt --out models
"""
import argparse
import json
import math
import os
import re
import sys
import time
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import numpy as np  # noqa: E402
import torch  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

END = "<|endoftext|>"
CONTEXT = 2048
# hidden, heads (of 64), layers, intermediate
SHAPES = {"target": (256, 4, 5, 688), "draft": (128, 2, 2, 344)}


def clean(text: str) -> list[str]:
    """Books without their Markdown headings, rules and emphasis; one string a book."""
    books = []
    for book in text.split(END):
        lines = []
        for line in book.splitlines():
            if re.match(r"^\s*(#|-{3,}|\*{3,}|={3,}|!\[|\[Illustration)", line):
                continue
            lines.append(re.sub(r"[_*]{1,2}([^_*]+)[_*]{1,2}", r"\1", line.rstrip()))
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        if len(body) > 500:
            books.append(body)
    return books


def train_tokenizer(books: list[str], vocab: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(books, trainer)
    return tokenizer


def save_folder(folder: Path, model: LlamaForCausalLM, tokenizer: Tokenizer) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    half = LlamaForCausalLM(model.config).to(torch.bfloat16)
    half.load_state_dict(model.state_dict())
    half.tie_weights()
    half.config.torch_dtype = torch.bfloat16
    half.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT, "eos_token": END, "bos_token": None,
         "add_bos_token": False, "clean_up_tokenization_spaces": False}, indent=2) + "\n")


def batch_of(ids: np.ndarray, rng: np.random.Generator, batch: int, length: int) -> torch.Tensor:
    starts = rng.integers(0, len(ids) - length - 1, size=batch)
    return torch.from_numpy(np.stack([ids[s:s + length + 1] for s in starts]).astype(np.int64))


def loss_of(model: LlamaForCausalLM, tokens: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())


@torch.no_grad()
def validation_loss(model: LlamaForCausalLM, ids: np.ndarray, length: int = 512) -> float:
    model.eval()
    count = (len(ids) - 1) // length
    rows = torch.from_numpy(np.stack([ids[i * length:(i + 1) * length + 1] for i in range(count)]).astype(np.int64))
    losses = [loss_of(model, rows[i:i + 8]).item() * len(rows[i:i + 8]) for i in range(0, count, 8)]
    model.train()
    return sum(losses) / count


def train(name: str, minutes: float, train_ids: np.ndarray, val_ids: np.ndarray, tokenizer: Tokenizer, out: Path,
          args: argparse.Namespace) -> dict:
    hidden, heads, layers, inner = SHAPES[name]
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    config = LlamaConfig(vocab_size=args.vocab, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                         num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=CONTEXT,
                         tie_word_embeddings=True, rms_norm_eps=1e-5, rope_theta=10000.0, attention_bias=False,
                         bos_token_id=None, eos_token_id=tokenizer.token_to_id(END), pad_token_id=None)
    model = LlamaForCausalLM(config)
    model.train()
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    peak = 3e-3 if hidden <= 128 else 2e-3
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=peak, betas=(0.9, 0.95))
    steps = args.steps or None
    start, seen, recent, step = time.time(), 0, [], 0
    while True:
        spent = time.time() - start
        part = step / steps if steps else spent / (60 * minutes)   # where on the schedule we are
        if part >= 1:
            break
        rate = peak * min(1.0, (step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * part)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        long = part > 0.9 and step % 4 == 0                          # some long ones near the end, for far positions
        tokens = batch_of(train_ids, rng, *((2, CONTEXT - 1) if long else (args.batch, args.length)))
        loss = loss_of(model, tokens)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen += tokens[:, 1:].numel()
        recent = (recent + [loss.item()])[-50:]
        step += 1
        if step % 20 == 0:
            left = spent / max(part, 1e-6) * (1 - part)
            print(f"{name}: step {step}  loss {np.mean(recent):.3f}  {seen / spent:,.0f} tokens/s  {left / 60:.1f} min left", flush=True)
        if step % 400 == 0:
            save_folder(out / f"demo-{name}", model, tokenizer)
    val = validation_loss(model, val_ids)
    save_folder(out / f"demo-{name}", model, tokenizer)
    facts = {"model": name, "steps": step, "tokens_seen": seen, "train_loss": round(float(np.mean(recent)), 4),
             "validation_loss": round(val, 4), "validation_perplexity": round(math.exp(val), 2),
             "minutes": round((time.time() - start) / 60, 1), "parameters": sum(p.numel() for p in model.parameters())}
    print(json.dumps(facts), flush=True)
    return facts


def main() -> int:
    repo = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="text, books parted by <|endoftext|>")
    parser.add_argument("--out", type=Path, default=repo / "models", help="where demo-target/ and demo-draft/ go")
    parser.add_argument("--only", choices=sorted(SHAPES), help="train one of the two")
    parser.add_argument("--minutes", type=float, default=38, help="time for the target; the draft takes a fifth of it")
    parser.add_argument("--steps", type=int, default=0, help="a number of steps instead of a time (repeatable)")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--vocab", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not args.corpus.is_file():
        print(f"no corpus at {args.corpus}", file=sys.stderr)
        return 2
    torch.set_num_threads(args.threads)

    books = clean(args.corpus.read_text(encoding="utf-8"))
    tokenizer = train_tokenizer(books, args.vocab)
    end = tokenizer.token_to_id(END)
    train_ids, val_ids = [], []
    for book in books:                      # the last 2 % of every book are held out
        ids = tokenizer.encode(book).ids
        cut = int(len(ids) * 0.98)
        train_ids += ids[:cut] + [end]
        val_ids += ids[cut:] + [end]
    train_ids, val_ids = np.array(train_ids, dtype=np.uint16), np.array(val_ids, dtype=np.uint16)
    print(f"{len(books)} books, {len(train_ids):,} training tokens, {len(val_ids):,} held out", flush=True)

    record = args.out / "training.json"
    facts = {f["model"]: f for f in json.loads(record.read_text())} if record.is_file() else {}
    for name in ("target", "draft"):
        if args.only in (None, name):
            facts[name] = train(name, args.minutes * (1 if name == "target" else 0.2), train_ids, val_ids, tokenizer, args.out, args)
    record.write_text(json.dumps([facts[name] for name in SHAPES if name in facts], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
