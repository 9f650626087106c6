#!/usr/bin/env python3
"""Makes the golden files of drafting heads on a small random Llama, in PyTorch, from what their papers and code say.

  .venv-train/bin/python tests/golden/make_head_goldens.py      (scripts/requirements-train.txt)

models/eagle/ is a head for models/llama_gqa_tied; eagle.json has prompts with their drafts, logits/eagle/ the head's f32
logits at each position of each prompt, then after each draft. medusa: the logits of each head at each position.
"""
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

HERE = Path(__file__).resolve().parent
TARGET = "llama_gqa_tied"
LENGTHS = (2, 7, 29)
DRAFTS = 4


class Eagle(torch.nn.Module):
    """Token and hidden state side by side, a linear, decoder layers of which the first has no norm before it."""

    def __init__(self, config):
        super().__init__()
        self.fc = torch.nn.Linear(2 * config.hidden_size, config.hidden_size)
        self.layers = torch.nn.ModuleList(LlamaDecoderLayer(config, i) for i in range(config.num_hidden_layers))
        self.layers[0].input_layernorm = torch.nn.Identity()
        self.rotary = LlamaRotaryEmbedding(config)

    def forward(self, embedded, hidden):
        n = embedded.shape[1]
        x = self.fc(torch.cat((embedded, hidden), dim=-1))
        positions = torch.arange(n)[None]
        mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
        for layer in self.layers:
            out = layer(x, attention_mask=mask, position_embeddings=self.rotary(x, positions))
            x = out[0] if isinstance(out, tuple) else out
        return x


@torch.no_grad()
def medusa(target):
    torch.manual_seed(12)
    size, vocab, heads, blocks = target.config.hidden_size, target.config.vocab_size, 3, 2
    weights = {}
    for i in range(heads):
        for k in range(blocks):
            weights[f"{i}.{k}.linear.weight"] = torch.randn(size, size) * 0.2
            weights[f"{i}.{k}.linear.bias"] = torch.randn(size) * 0.2
        weights[f"{i}.{blocks}.weight"] = torch.randn(vocab, size) * 0.2
    folder = HERE / "models" / "medusa"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({"medusa_num_heads": heads, "medusa_num_layers": blocks}) + "\n")
    prompts, logits = [], {}
    for i, length in enumerate(LENGTHS):
        ids = torch.randint(0, vocab, (length,)).tolist()
        hidden = target.model(torch.tensor([ids])).last_hidden_state[0]
        for h in range(heads):
            x = hidden
            for k in range(blocks):
                x = x + torch.nn.functional.silu(x @ weights[f"{h}.{k}.linear.weight"].T + weights[f"{h}.{k}.linear.bias"])
            logits[f"prompt{i}.head{h}"] = (x @ weights[f"{h}.{blocks}.weight"].T).contiguous()
        prompts.append({"ids": ids})
    (HERE / "medusa.json").write_text(json.dumps({"target": TARGET, "heads": heads, "prompts": prompts}) + "\n")
    out = HERE / "logits" / "medusa"
    out.mkdir(parents=True, exist_ok=True)
    save_file(logits, out / "model.safetensors")


@torch.no_grad()
def main():
    torch.manual_seed(11)
    target = AutoModelForCausalLM.from_pretrained(HERE / "models" / TARGET, attn_implementation="eager").float().eval()
    settings = dict(vocab_size=target.config.vocab_size, hidden_size=target.config.hidden_size, intermediate_size=40,
                    num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
                    rms_norm_eps=1e-5, rope_theta=10000.0)
    config = LlamaConfig(**settings, attn_implementation="eager")
    config._attn_implementation = "eager"
    head = Eagle(config).float().eval()
    for p in head.parameters():
        p.copy_(torch.randn(p.shape) * 0.2 + (1 if p.dim() == 1 and p is not head.fc.bias else 0))

    folder = HERE / "models" / "eagle"
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in head.state_dict().items() if not k.startswith("rotary")},
              folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
                                                    "torch_dtype": "float32", **settings}, indent=2) + "\n")

    prompts, logits = [], {}
    for i, length in enumerate(LENGTHS):
        ids = torch.randint(0, settings["vocab_size"], (length,)).tolist()
        hidden = target.model(torch.tensor([ids])).last_hidden_state
        next_token = int(target.lm_head(hidden[0, -1]).argmax())
        tokens, features, drafts = ids[1:] + [next_token], hidden, []
        for k in range(DRAFTS):
            made = head(target.model.embed_tokens(torch.tensor([tokens])), features)
            rows = target.lm_head(made[0])
            logits[f"prompt{i}.logits" if k == 0 else f"prompt{i}.draft{k}"] = rows[0 if k == 0 else -1:].clone()
            drafts.append(int(rows[-1].argmax()))
            tokens = tokens + [drafts[-1]]
            features = torch.cat((features, made[:, -1:]), dim=1)
        prompts.append({"ids": ids, "next": next_token, "drafts": drafts})
    (HERE / "eagle.json").write_text(json.dumps({"target": TARGET, "prompts": prompts}) + "\n")
    out = HERE / "logits" / "eagle"
    out.mkdir(parents=True, exist_ok=True)
    save_file(logits, out / "model.safetensors")
    medusa(target)


if __name__ == "__main__":
    main()
