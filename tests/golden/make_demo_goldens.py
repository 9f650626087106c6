#!/usr/bin/env python3
"""Makes the golden files of the demo models: token ids of texts, and greedy continuations in float32.

  .venv-train/bin/python tests/golden/make_demo_goldens.py      (scripts/requirements-train.txt)
"""
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent.parent / "models"
TEXTS = [
    "", " ", "a", "Once upon a time", "Once upon a time there was a little girl who lived in a wood.", "\"Oh!\" said Alice.", "  two  spaces   three",
    "\n", "\n\n\nparagraph", "tabs\tand\r\nlines\r", "trailing space ", "don't can't I'll we've she'd they're it's", "DON'T CAN'T",
    "12345 6 78 901", "3.14159 and 2,718", "1st 2nd x86_64", "$%&!?()[]{}<>~`^|\\/@#*_+-=", "email@example.com http://example.org/?q=1&r=2",
    "naïve café résumé Ångström", "e\u0301 combining a\u0308", "\u00a0non-breaking\u2003em space", "\u200bzero width", "ﬁ ligature ½ ²",
    "Привет, мир", "γεια σου κόσμε", "שלום עולם", "مرحبا بالعالم", "你好，世界", "こんにちは世界", "안녕하세요", "नमस्ते दुनिया", "สวัสดีชาวโลก",
    "😀", "👩‍👩‍👧‍👦 family", "🇩🇪 flag", "🏳️‍🌈", "mixed 你 and 😀 and é", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "\U0001F9D1\U0001F3FD\u200d\U0001F680",
    "def f(x):\n    return x + 1\n", "for (int i = 0; i < n; ++i) { a[i] *= 2; }", "{\"key\": [1, 2.5, null, true]}", "<html><body>&amp;</body></html>",
    "<|endoftext|>", "before<|endoftext|>after", " <|endoftext|> ", "<|endoftext", "<|endoftext|><|endoftext|>", "a" * 200, "ab" * 100, " " * 50, "\n" * 20,
    "The quick brown fox jumps over the lazy dog.", "THE QUICK BROWN FOX", "supercalifragilisticexpialidocious", "… — – “quoted” ‘single’",
    "\u0000 nul \u0001 control \u007f", "\ufeffBOM", "\ufffd replacement", "x\u2028line\u2029paragraph", "Mr. Toad, Mrs. Tittlemouse & Co.", "'s 't 're", "snow-white and rose-red",
]
PROMPTS = ["Once upon a time", "The king said", "\"What is the matter?\" asked", "There was once a little girl who", "In the middle of the forest stood",
           "The rabbit ran", "When the sun rose the next morning,", "The old woman looked at him and", "One day a poor man went", "The wolf came to the door and",
           "They lived in a small house", "Then the prince took", "It was a cold winter's night,", "The children were", "At last she came to"]


@torch.no_grad()
def continuation(model, ids, count=48):
    out, gap = list(ids), float("inf")
    for _ in range(count):
        logits = model(torch.tensor([out])).logits[0, -1]
        top = logits.topk(2).values
        gap = min(gap, (top[0] - top[1]).item())
        out.append(int(logits.argmax()))
    return out[len(ids):], gap


def main():
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(MODELS / "demo-target" / "tokenizer.json"))
    cases = [{"text": t, "ids": tokenizer.encode(t).ids} for t in TEXTS]
    (HERE / "demo_tokenizer.json").write_text(json.dumps({"made_by": "tests/golden/make_demo_goldens.py", "cases": cases}) + "\n")
    greedy = {"made_by": "tests/golden/make_demo_goldens.py"}
    for name, count in (("demo-target", 8), ("demo-draft", 2)):
        model = LlamaForCausalLM.from_pretrained(MODELS / name).float().eval()
        kept = []
        for prompt in PROMPTS:
            ids = tokenizer.encode(prompt).ids
            out, gap = continuation(model, ids)
            if gap > 2e-3 and len(kept) < count:  # a hundred times what float32 is off by, so that any order of summation agrees
                kept.append({"prompt": prompt, "ids": ids, "greedy_ids": out, "text": tokenizer.decode(out), "smallest_gap": gap})
        greedy[name] = kept
        print(name, len(kept), [k["text"][:60] for k in kept])
    (HERE / "demo_greedy.json").write_text(json.dumps(greedy, indent=1) + "\n")


if __name__ == "__main__":
    main()
