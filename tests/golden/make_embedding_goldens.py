#!/usr/bin/env python3
"""Makes the golden embeddings: final hidden states of small models in Hugging Face transformers, pooled as vLLM does.

  .venv-train/bin/python tests/golden/make_embedding_goldens.py      (scripts/requirements-train.txt)

embeddings.json has for each model the prompts of 5 and of 40 tokens of its golden file, and of each the last token's
hidden state and the mean of all, in float32 and not normalised.
"""
import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

HERE = Path(__file__).resolve().parent
MODELS = ("llama_gqa_tied", "llama_bf16", "mistral", "mistral_window", "mixtral", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe",
          "smollm3", "ministral")
LENGTHS = (5, 40)


def rounded(values):
    return [float(f"{x:.7g}") for x in values.tolist()]


@torch.no_grad()
def embeddings(name):
    model = AutoModelForCausalLM.from_pretrained(HERE / "models" / name, dtype=torch.float32, attn_implementation="eager").eval()
    out = []
    for prompt in json.loads((HERE / f"{name}.json").read_text())["prompts"]:
        if len(prompt["ids"]) not in LENGTHS:
            continue
        states = model.base_model(torch.tensor([prompt["ids"]]), use_cache=False).last_hidden_state[0]
        out.append({"ids": prompt["ids"], "last": rounded(states[-1]), "mean": rounded(states.mean(dim=0))})
    return out


def main():
    lines = [f"{json.dumps(name)}: {json.dumps(embeddings(name))}" for name in MODELS]
    (HERE / "embeddings.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
