#!/usr/bin/env python3
"""Makes beams.json: what Hugging Face's beam search finds with small random models, ids and scores.

  .venv-train/bin/python tests/golden/make_beam_goldens.py      (scripts/requirements-train.txt, models/ beside this)

A case is kept if float32 and float64 find the same.
"""
import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

HERE = Path(__file__).resolve().parent
MODELS = ("llama_gqa_tied", "gpt2")


@torch.no_grad()
def search(model, ids, case):
    ends = case["ends"] or None
    found = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False, num_beams=case["beam_width"],
                           num_return_sequences=case["n"], length_penalty=case["length_penalty"], early_stopping=case["early_stopping"],
                           max_new_tokens=case["max_tokens"], min_new_tokens=case["min_tokens"] or None, eos_token_id=ends, pad_token_id=0,
                           return_dict_in_generate=True, output_scores=True)
    out = []
    for tokens, score in zip(found.sequences, found.sequences_scores):
        tokens = tokens[len(ids):].tolist()
        for i, t in enumerate(tokens):  # after the end there are pads
            if t in case["ends"]:
                tokens = tokens[:i + 1]
                break
        out.append({"ids": tokens, "score": score.item()})
    return out


def cases(greedy):
    few, many = [greedy[6]], sorted({greedy[5], greedy[9], greedy[13], 17})
    for width, n in ((2, 1), (3, 3), (4, 2), (8, 8)):
        for penalty in (1.0, 0.0, -1.5, 2.0):
            for stopping in (False, True, "never"):
                for ends in ([], few, many):
                    if not ends and (stopping or penalty != 1.0):
                        continue  # all sequences end with max_tokens
                    for min_tokens in (0, 9) if width == 3 else (0,):
                        yield dict(beam_width=width, n=n, length_penalty=penalty, early_stopping=stopping, ends=ends, max_tokens=18, min_tokens=min_tokens)


@torch.no_grad()
def greedy_of(model, ids, count=18):
    out = list(ids)
    for _ in range(count):
        out.append(int(model(torch.tensor([out])).logits[0, -1].argmax()))
    return out[len(ids):]


def main():
    torch.set_num_threads(1)
    out, seen, ended = [], 0, 0
    for name in MODELS:
        model = AutoModelForCausalLM.from_pretrained(HERE / "models" / name, torch_dtype=torch.float32).eval()
        twice = AutoModelForCausalLM.from_pretrained(HERE / "models" / name, torch_dtype=torch.float64).double().eval()
        prompt = torch.randint(256 if name != "gpt2" else model.config.vocab_size, (13,), generator=torch.Generator().manual_seed(5)).tolist()
        greedy = greedy_of(model, prompt)
        for i, case in enumerate(cases(greedy)):
            if name == "gpt2" and i % 5:
                continue
            found, exact = search(model, prompt, case), search(twice, prompt, case)
            seen += 1
            if [f["ids"] for f in found] != [e["ids"] for e in exact]:
                continue
            ended += any(len(f["ids"]) < case["max_tokens"] for f in found)
            out.append({"model": name, "prompt": prompt, **case, "found": found})
    print(f"{len(out)} of {seen} cases kept, {ended} with sequences that end early")
    lines = ",\n".join(json.dumps(c) for c in out)
    (HERE / "beams.json").write_text('{"made_by": "tests/golden/make_beam_goldens.py", "cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
