#!/usr/bin/env python3
"""Compares tokenizers with their reference implementations on random texts and random pipelines.

    tests/random/tokenizers.py [--seed N] [--pipelines N] [--texts N] [--build DIR]

Four comparisons, all of fresh seeds where none is given, each by the test programs of --build (build/release):
  the fixtures of tests/unit/text with more texts (Hugging Face tokenizers, SentencePiece);
  tokenizers of randomly chosen parts (Hugging Face tokenizers);
  rank files (tiktoken);
  GGUF vocabularies with special tokens (llama.cpp).
The seed and the command that repeats a failure are printed. The pinned packages go into a virtual environment under
the build folder.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

from pinned import into_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = pathlib.Path(__file__).with_name("requirements-tokenizers.txt")


def random_tokenizer(rng):
    """A tokenizer.json's parts, drawn from what docs/tokenizers.md says is read; and whether its decoder counts."""
    import make_fixtures as f
    from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors

    def some(choices, most):
        return [rng.choice(choices)() for _ in range(rng.randrange(most + 1))]

    def flag():
        return rng.random() < 0.5

    def behavior():
        return rng.choice(["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"])

    patterns = [r"\w+", r"\W+", r"\p{Han}+", r"\p{N}{1,3}", r"[^\s\p{L}\p{N}]+", r"\s+(?!\S)|\s+", r"(?i:'s|'t|the)",
                r"[aeiou]", r"\p{Lu}?\p{Ll}+", r"\d", r"[\w-]+", r"\p{^Latin}+", r"(?=[A-Z])", r"e|en", "\n"]
    cutting = [
        lambda: pre_tokenizers.Split(Regex(rng.choice(patterns)), behavior(), invert=flag()),
        lambda: pre_tokenizers.Split(rng.choice([" ", "e", "th", ".", "  "]), behavior(), invert=flag()),
        lambda: pre_tokenizers.Digits(individual_digits=flag()),
        lambda: pre_tokenizers.Punctuation(behavior()),
        lambda: pre_tokenizers.Whitespace(),
        lambda: pre_tokenizers.WhitespaceSplit(),
        lambda: pre_tokenizers.CharDelimiterSplit(rng.choice(",e ")),
    ]
    changing = [
        normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD, normalizers.Lowercase,
        normalizers.StripAccents,
        lambda: normalizers.Strip(left=flag(), right=flag()),
        lambda: normalizers.Prepend(rng.choice([f.SPACE, "x", " "])),
        lambda: normalizers.Replace(rng.choice([" ", "e", "th"]), rng.choice([f.SPACE, "", "ö", "th e"])),
        lambda: normalizers.Replace(Regex(rng.choice([r"\s+", r"\d", r"[aou]", r" {2,}"])), rng.choice([" ", "", "#"])),
    ]

    changes = some(changing, 3)

    def metaspace():
        # "first" asks where a piece came from before normalizers, in a way of its own where they change a text's begin.
        scheme = rng.choice(["always", "never"] if changes else ["always", "first", "never"])
        return pre_tokenizers.Metaspace(replacement=f.SPACE, prepend_scheme=scheme, split=flag())

    kind = rng.choice(["bytes", "bytes", "characters", "unigram"])
    if kind == "bytes":
        unknown = rng.choice([{}, {"unk_token": "<s>"}, {"unk_token": "<s>", "fuse_unk": True}])
        t = f.byte_gaps(**unknown) if rng.random() < 0.3 else f.byte_bpe_across_words(rng.randrange(300, 900))
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=flag(), use_regex=flag())
        after = some(cutting, 2) if rng.random() < 0.3 else []
        t.pre_tokenizer = pre_tokenizers.Sequence(some(cutting, 3) + [byte_level] + after)
        t.decoder = decoders.ByteLevel()
    else:
        fallback = flag()
        t = (f.unigram(byte_fallback=fallback) if kind == "unigram"
             else f.character_bpe(fallback, rng.choice(["<unk>", None]), flag(), flag()))
        steps = some(cutting, 2) + ([metaspace()] if flag() else [])
        if steps:
            t.pre_tokenizer = pre_tokenizers.Sequence(steps)
        t.decoder = f.llama_decoder()
    if changes:
        t.normalizer = normalizers.Sequence(changes)
    added = [AddedToken(content, single_word=flag(), lstrip=flag(), rstrip=flag(), normalized=flag())
             for content in rng.sample(["cat", "<mask>", "[x]", "the s", "wor", "<mask>2"], rng.randrange(4))]
    end = AddedToken("</s>", lstrip=flag(), rstrip=flag(), normalized=flag())
    t.add_tokens(added)
    t.add_special_tokens([end])
    if flag():
        t.post_processor = processors.TemplateProcessing(
            single="</s> $A" if flag() else "$A </s>", special_tokens=[("</s>", t.token_to_id("</s>"))])
    # tokenizers 0.23 decodes a normalized token as its normalized content, and takes a special one for text then.
    changed = changes and any(a.normalized and t.normalizer.normalize_str(a.content) != a.content for a in added + [end])
    return t, not changed


def run(name, program, test, folder, again, **environment):
    print(f"{name}: {test}", flush=True)
    done = subprocess.run([program, f"--gtest_filter={test}", "--gtest_brief=1"], capture_output=True, text=True,
                          errors="replace", env={**os.environ, **environment})
    if done.returncode == 0:
        if re.search(r"\[  PASSED  \] [1-9]", done.stdout):
            return True
        print(f"{name}: {pathlib.Path(program).name} has run no test of that name, or skipped it")
        return False
    print("\n".join((done.stdout + done.stderr).splitlines()[:60]))
    print(f"{name} differs; the files are in {folder}; again: {again}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--pipelines", type=int, default=150, help="tokenizers of random parts")
    parser.add_argument("--texts", type=int, default=300, help="random texts of each tokenizer")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    args = parser.parse_args()
    work = args.build.resolve() / "random"
    into_environment(__file__, work / "tokenizers-venv", REQUIREMENTS)
    sys.path[:0] = [str(ROOT / "tests" / "unit" / folder / "fixtures") for folder in ("text", "weights")]
    import make_fixtures
    import make_llama_cpp_vectors
    import make_tiktoken_vectors

    again = f"{pathlib.Path(__file__).name} --seed {args.seed} --pipelines {args.pipelines} --texts {args.texts}"
    print(f"seed {args.seed}", flush=True)
    folders = {name: work / "tokenizers" / name for name in ("fixtures", "pipelines", "gguf", "ranks")}
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    noise = os.open(work / "tokenizers" / "making.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(noise, 2)  # what the libraries print; a fault of this script shows there, too
    make_fixtures.make(folders["fixtures"], make_fixtures.TEXTS + make_fixtures.random_texts(args.texts, args.seed))
    rng = random.Random(args.seed)
    for i in range(args.pipelines):
        texts = make_fixtures.TEXTS + make_fixtures.random_texts(args.texts, rng.randrange(1 << 31))
        tokenizer, decodes = random_tokenizer(rng)
        make_fixtures.write(folders["pipelines"], f"p{i}", tokenizer, texts, decodes)
    vectors = folders["gguf"] / "vectors.json"
    make_llama_cpp_vectors.make(vectors, args.texts, args.seed)
    ranks = folders["ranks"] / "vectors.json"
    make_tiktoken_vectors.make(ranks, args.texts, args.seed)

    text, weights = args.build / "bin" / "test_text", args.build / "bin" / "test_weights"
    held = [run(name, text, "*ReferenceFixtures*", folders[name], again,
                PATCHBAY_TOKENIZER_FIXTURES=str(folders[name])) for name in ("fixtures", "pipelines")]
    held.append(run("gguf", weights, "GgufTokenizer.gives_the_ids_of_llama_cpp_for_each_kind_of_file", folders["gguf"],
                    again, PATCHBAY_LLAMA_CPP_VECTORS=str(vectors)))
    held.append(run("ranks", text, "Tiktoken.gives_the_ids_of_tiktoken_for_each_model", folders["ranks"], again,
                    PATCHBAY_TIKTOKEN_VECTORS=str(ranks)))
    print("no difference" if all(held) else f"again: {again}")
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
