#!/usr/bin/env python3
"""Compares sampled tokens with a reference in numpy of what docs/sampling.md says, for random parameters.

    tests/random/sampling.py [--seed N] [--cases N] [--build DIR]

`patchbay generate` gives the raw log-probabilities of the whole vocabulary at each position. The reference takes them,
the prompt and the tokens so far through every stage and the documented draw (Philox, Gumbel), and must come to the
same token. Where two numbers that decide lie closer than float32 can tell, the position is passed over and counted.
"""

import argparse
import json
import math
import pathlib
import random
import subprocess
import sys

from pinned import into_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEAR = 1e-4  # of logits and their differences; of probabilities that add up, a tenth
PROMPTS = ["The wolf said", "Once upon a time there was a", "a", '"Yes," said the', "He said: no. She said: no. He"]
REPEATING = ["the king and the queen and the king and the queen and", "the wolf said the wolf said the wolf",
             "a man had a son and a man had a", "and then and then and then", "he said: no, he said: no, he said:",
             'no" and "no" and "no']
SAMPLE, EXCLUDE = 0, 6  # streams of draws


class Near(Exception):
    """What decides is too close."""


def philox(counter, key):
    """Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011."""
    mask = 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = ((b >> 32) ^ counter[1] ^ key[0], b & mask, (a >> 32) ^ counter[3] ^ key[1], a & mask)
        key = (key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask
    return counter


def uniform(seed, position, stream, index):
    counter = (position & 0xFFFFFFFF, (position >> 32) ^ (stream << 24), index // 4, 0x50424159)
    return (philox(counter, (seed & 0xFFFFFFFF, seed >> 32))[index % 4] + 0.5) / 2**32


class Reference:
    def __init__(self, np, parameters, breakers):
        self.np, self.p, self.breakers = np, parameters, breakers
        self.mu = 2 * parameters.get("mirostat_ent", 5)

    def adjusted(self, logits, prompt, output):
        p, x = self.p, logits.copy()
        for token, bias in p.get("logit_bias", {}).items():
            x[token] += bias
        for token in set(prompt) | set(output):
            penalty = p.get("repetition_penalty", 1)
            if penalty != 1 and abs(x[token]) < NEAR:
                raise Near
            x[token] = x[token] / penalty if x[token] > 0 else x[token] * penalty
        for token in set(output):
            x[token] -= p.get("presence_penalty", 0) + p.get("frequency_penalty", 0) * output.count(token)
        if p.get("dry_multiplier", 0) > 0:
            for token, length in self.repetitions(prompt + output).items():
                x[token] -= p["dry_multiplier"] * p.get("dry_base", 1.75) ** (length - p.get("dry_allowed_length", 2))
        return x

    def repetitions(self, history):
        """token → the longest repetition that it would go on with, where that is long enough."""
        last = self.p.get("dry_penalty_last_n", 0)
        history = history[-last:] if last else history
        out = {}
        for i in range(len(history) - 1):
            length = 0
            while length <= i and history[i - length] == history[-1 - length] and history[i - length] not in self.breakers:
                length += 1
            token = history[i + 1]
            if length > 0 and length >= self.p.get("dry_allowed_length", 2) and token not in self.breakers:
                out[token] = max(out.get(token, 0), length)
        return out

    def at_least(self, x, least):
        if self.np.min(self.np.abs(x - least)) < NEAR:
            raise Near
        return x >= least

    def most_likely(self, probability, order, p):
        """How many of `order` make up p."""
        sums = self.np.cumsum(probability[order])
        if self.np.min(self.np.abs(sums - p)) < NEAR / 10:
            raise Near
        return int(self.np.searchsorted(sums, p)) + 1

    def cut(self, ids, x, count, order):
        """The first `count` of an order; the next must not be as good."""
        kept, others = order[:count], order[count:]
        if len(others) and abs(x[kept[-1]] - x[others[0]]) < NEAR:
            raise Near
        return ids[kept], kept

    def kept(self, logits, seed, position):
        """ids, logits over the temperature"""
        np, p = self.np, self.p
        x = logits / p["temperature"]
        ids = np.arange(len(x))

        def shares():
            weights = np.exp(x - x.max())
            return weights / weights.sum()

        if p.get("top_n_sigma", 0) > 0:
            mask = self.at_least(x, x.max() - p["top_n_sigma"] * x.std())
            ids, x = ids[mask], x[mask]
        if 0 < p.get("top_k", 0) < len(ids):
            ids, kept = self.cut(ids, x, p["top_k"], np.argsort(-x, kind="stable"))
            x = x[kept]
        if p.get("typical", 1) < 1:
            probability = shares()
            surprisal = -np.log(probability)
            strange = np.abs(surprisal - (probability * surprisal).sum())
            order = np.argsort(strange, kind="stable")
            count = self.most_likely(probability, order, p["typical"])
            ids, kept = self.cut(ids, strange, count, order)
            x = x[kept]
        if p.get("top_p", 1) < 1:
            order = np.argsort(-x, kind="stable")
            ids, kept = self.cut(ids, x, self.most_likely(shares(), order, p["top_p"]), order)
            x = x[kept]
        if p.get("min_p", 0) > 0:
            mask = self.at_least(x, x.max() + math.log(p["min_p"]))
            ids, x = ids[mask], x[mask]
        if uniform(seed, position, EXCLUDE, 0) < p.get("xtc_probability", 0):
            top = self.at_least(x, x.max() - math.log(shares().max()) + math.log(p["xtc_threshold"]))
            if top.any():
                last = np.flatnonzero(top)[np.argmin(x[top])]
                if (np.abs(x[top] - x[last]) < NEAR).sum() > 1:
                    raise Near
                top[last] = False
                ids, x = ids[~top], x[~top]
        if p.get("mirostat"):
            least = -self.mu * math.log(2)
            mask = self.at_least(np.log(shares()), least) | (x == x.max())
            ids, x = ids[mask], x[mask]
        return ids, x

    def note(self, token, ids, x):
        """Mirostat's surprisal of the token that came."""
        if self.p.get("mirostat"):
            weights = self.np.exp(x - x.max())
            surprisal = -math.log2(float(weights[ids == token][0] / weights.sum()))
            self.mu -= self.p.get("mirostat_lr", 0.1) * (surprisal - self.p.get("mirostat_ent", 5))

    def token(self, logits, prompt, output, seed):
        np = self.np
        x = self.adjusted(logits, prompt, output)
        if self.p["temperature"] == 0:
            order = np.argsort(-x, kind="stable")
            if x[order[0]] - x[order[1]] < NEAR:
                raise Near
            return int(order[0]), None
        position = len(prompt) + len(output)
        ids, x = self.kept(x, seed, position)
        noise = [-math.log(-math.log(uniform(seed, position, SAMPLE, int(token)))) for token in ids]
        score = x + np.array(noise)
        order = np.argsort(-score)
        if len(order) > 1 and score[order[0]] - score[order[1]] < NEAR:
            raise Near
        return int(ids[order[0]]), (ids, x)


def random_parameters(rng, vocabulary):
    p = {"temperature": rng.choice([0, 0.3, 0.7, 1, 1, 1.5, 3])}
    choices = {
        "top_k": lambda: rng.choice([1, 2, 5, 40, 500]), "top_p": lambda: rng.choice([0.1, 0.5, 0.9, 0.99]),
        "min_p": lambda: rng.choice([0.01, 0.1, 0.5]), "repetition_penalty": lambda: rng.choice([0.8, 1.1, 1.5, 3]),
        "presence_penalty": lambda: rng.choice([-1, 0.5, 2]), "frequency_penalty": lambda: rng.choice([-0.5, 0.3, 1]),
        "top_n_sigma": lambda: rng.choice([0.5, 1, 2]), "typical": lambda: rng.choice([0.2, 0.6, 0.95]),
        "logit_bias": lambda: {rng.randrange(vocabulary): rng.choice([-20, 5, 12]) for _ in range(3)},
    }
    for name in rng.sample(sorted(choices), rng.randrange(5)):
        p[name] = choices[name]()
    if rng.random() < 0.25:
        p |= {"xtc_probability": rng.choice([0.5, 1]), "xtc_threshold": rng.choice([0.05, 0.2])}
    if rng.random() < 0.3:
        p |= {"dry_multiplier": rng.choice([0.8, 5]), "dry_base": rng.choice([1.2, 1.75]),
              "dry_allowed_length": rng.choice([1, 2, 3, 5, 8]), "dry_penalty_last_n": rng.choice([0, 0, 6, 40])}
    if rng.random() < 0.2:
        p |= {"mirostat": 2, "mirostat_ent": rng.choice([1, 3, 5]), "mirostat_lr": rng.choice([0.1, 0.5])}
    return p


def command(args, parameters, prompt, seed, tokens):
    out = [args.build / "bin" / "patchbay", "generate", "--model", args.model, "--prompt", prompt, "--seed", seed,
           "--ignore-eos", "--max-tokens", tokens, "--logprobs", -1, "--max-logprobs", -1, "--logits-statistics",
           "--output-format", "jsonl"]
    for name, value in parameters.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, dict):
            for token, bias in value.items():
                out += [flag, f"{token}:{bias}"]
        else:
            out += [flag, value]
    return [str(part) for part in out]


def generated(args, *what):
    done = subprocess.run(command(args, *what), capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command(args, *what))}\n{done.stderr}")
    return json.loads(done.stdout)


def raw_logits(np, args, parameters, prompt, seed, tokens):
    """The tokens, and the logits of each position. Log-probabilities lack what all logits of a position have in common;
    where it counts, that comes from the mean of the highest logits of outputs of 1, 2, … tokens."""
    whole = generated(args, parameters, prompt, seed, tokens)
    rows = []
    for entry in whole["logprobs"]:
        row = np.full(len(entry["top"]), np.nan)
        for token, logprob in entry["top"]:
            row[token] = logprob
        assert not np.isnan(row).any(), "a token of the vocabulary has no log-probability"
        rows.append(row)
    if parameters.get("repetition_penalty", 1) != 1:
        before = 0
        for i, row in enumerate(rows):
            total = (i + 1) * generated(args, parameters, prompt, seed, i + 1)["logits"]["max_logit"]
            row += total - before - row.max()
            before = total
    return whole["token_ids"], rows


def bytes_by_token(tokenizer):
    from tokenizers import pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain = [c for c in alphabet if ord(c) < 256]
    byte_of = {c: ord(c) for c in plain} | dict(zip([c for c in alphabet if ord(c) >= 256],
                                                    [b for b in range(256) if chr(b) not in plain]))
    return {t: bytes(byte_of[c] for c in s) for s, t in tokenizer.get_vocab().items() if all(c in byte_of for c in s)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models" / "demo-target")
    args = parser.parse_args()
    requirements = pathlib.Path(__file__).with_name("requirements-tokenizers.txt")
    into_environment(__file__, args.build.resolve() / "random" / "tokenizers-venv", requirements)
    import numpy as np
    from tokenizers import Tokenizer

    print(f"seed {args.seed}", flush=True)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    breakers = {t for t, b in bytes_by_token(tokenizer).items() if any(c in b for c in b'\n:"*')}
    rng = random.Random(args.seed)
    compared = near = differ = 0
    for _ in range(args.cases):
        parameters = random_parameters(rng, tokenizer.get_vocab_size())
        prompt = rng.choice(REPEATING if "dry_multiplier" in parameters else PROMPTS + REPEATING)
        prompt_ids = tokenizer.encode(prompt).ids
        if "dry_multiplier" in parameters:  # the penalties decide only where repeating is likely
            tokens = Reference(np, parameters | {"dry_allowed_length": 1}, breakers).repetitions(prompt_ids)
            parameters["logit_bias"] = {token: rng.choice([4, 8, 12]) for token in set(tokens) | set(prompt_ids[-10:])}
        seed = rng.choice([0, 7, 1 << 33, rng.randrange(1 << 63)])
        what = args, parameters, prompt, seed, rng.randrange(1, 9)
        tokens, rows = raw_logits(np, *what)
        reference = Reference(np, parameters, breakers)
        for i, (token, row) in enumerate(zip(tokens, rows, strict=True)):
            try:
                expected, left = reference.token(row, prompt_ids, tokens[:i], seed)
            except Near:
                near += 1
                if parameters.get("mirostat"):
                    break  # the surprisal of this token is not known, so neither is what comes
                continue
            compared += 1
            if token != expected:
                differ += 1
                print(f"token {i} is {token}, the reference has {expected}: {' '.join(command(*what)[1:])}", flush=True)
                break
            if left:
                reference.note(token, *left)
    print(f"{compared} tokens compared, {near} too near to tell, {differ} differ")
    if compared == 0 or near > compared / 10:
        print("too many are too near to tell")
    sys.exit(1 if differ or compared == 0 or near > compared / 10 else 0)


if __name__ == "__main__":
    main()
