#!/usr/bin/env python3
"""How many JSON Schemas compile, whether texts drawn under them are valid, and what they cost.

    cmake --build build/release --target schema_texts
    tests/random/json_schemas.py --suite FOLDER [--texts N] [--build DIR]
    tests/random/json_schemas.py --schemas FILE.jsonl [--every N]

FOLDER is a checkout of json-schema-org/JSON-Schema-Test-Suite; each line of FILE.jsonl is a schema, or an object with a
member `json_schema` that is one, or its text. The package jsonschema judges each text by the draft of its schema, with
formats checked. What is refused is counted by its reason. Exit status 1: a text is invalid.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

from pinned import into_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRAFTS = {"draft4": "Draft4", "draft6": "Draft6", "draft7": "Draft7", "draft2019-09": "Draft201909"}


def of_suite(folder):
    """Schemas with the name of their validator, and whether a test has a valid value."""
    for path in sorted((folder / "tests").rglob("*.json")):
        draft = path.relative_to(folder / "tests").parts[0]
        if draft in ("draft3", "latest"):
            continue
        for case in json.loads(path.read_text()):
            schema = case["schema"]
            if isinstance(schema, dict) and "$schema" not in schema and draft in DRAFTS:
                number = {"draft4": "draft-04", "draft6": "draft-06", "draft7": "draft-07"}.get(draft)
                uri = f"http://json-schema.org/{number}/schema#" if number else "https://json-schema.org/draft/2019-09/schema"
                schema = {"$schema": uri, **schema}
            kind = DRAFTS.get(draft, "Draft202012") + "Validator"
            where = f"{path.relative_to(folder / 'tests')}: {case['description']}"
            yield where, schema, kind, any(test["valid"] for test in case["tests"])


def of_lines(path, every):
    for n, line in enumerate(path.read_text().splitlines()):
        if n % every:
            continue
        schema = json.loads(line)
        if isinstance(schema, dict) and "json_schema" in schema:
            schema = schema["json_schema"]
        if isinstance(schema, str):
            schema = json.loads(schema)
        yield f"line {n + 1}", schema, None, True


def reason(text):
    text = re.sub(r"^json: ", "", text)
    text = re.sub(r"^#\S*: ", "", text)
    text = re.sub(r'"[^"]*"|https?:\S+|-?\d[\d.e+]*', "…", text)
    return text[:90]


def judge(jsonschema, schema, kind, text):
    """None: valid."""
    validator = getattr(jsonschema, kind) if kind else jsonschema.validators.validator_for(
        schema, default=jsonschema.Draft202012Validator)
    try:
        value = json.loads(text)
    except ValueError as e:
        return f"no JSON: {e}"
    try:
        error = next(validator(schema, format_checker=validator.FORMAT_CHECKER).iter_errors(value), None)
    except Exception as e:  # a reference that it does not follow, a pattern that it cannot read
        return f"not judged: {type(e).__name__}: {str(e)[:80]}"
    return error and error.message[:150]


def share(values, at):
    return sorted(values)[min(len(values) - 1, int(at * len(values)))] if values else float("nan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", type=pathlib.Path)
    parser.add_argument("--schemas", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--texts", type=int, default=2)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--refused", action="store_true", help="list every refused schema")
    args = parser.parse_args()
    into_environment(__file__, args.build / "schemas", ROOT / "tests" / "random" / "requirements-schemas.txt")
    import jsonschema

    cases = list(of_suite(args.suite) if args.suite else of_lines(args.schemas, args.every))
    lines = "".join(json.dumps(json.dumps(schema)) + "\n" for _, schema, _, _ in cases)
    out = subprocess.run([args.build / "bin" / "schema_texts", str(args.texts)], input=lines, text=True, check=True,
                         stdout=subprocess.PIPE).stdout.splitlines()
    refused, invalid, unjudged = collections.Counter(), [], []
    compiled = matched = compiled_matched = texts = 0
    times, masks = [], []
    for (where, schema, kind, matches), line in zip(cases, out, strict=True):
        found = json.loads(line)
        times.append((found["compile_cpu_ms"], where))
        matched += matches
        if "refused" in found:
            refused[reason(found["refused"])] += 1
            if args.refused:
                print(f"{where}\n    {found['refused'][:200]}\n    {json.dumps(schema)[:600]}")
            continue
        compiled += 1
        compiled_matched += matches
        masks += [found["mask_us"]] if found.get("mask_us", -1) >= 0 else []
        for text in found["texts"]:
            texts += 1
            wrong = judge(jsonschema, schema, kind, text)
            if wrong:
                (unjudged if wrong.startswith("not judged") else invalid).append((where, schema, text, wrong))
    for where, schema, text, wrong in invalid + unjudged:
        print(f"{where}\n    {json.dumps(schema)[:400]}\n    {text[:300]}\n    {wrong}")
    for why, count in refused.most_common(60):
        print(f"{count:5} {why}")
    print(f"{len(cases)} schemas, {compiled} compile: {100 * compiled / len(cases):.1f} %; of {matched} under which the "
          f"tests have a valid value {100 * compiled_matched / matched:.1f} %")
    print(f"{texts} texts, {len(invalid)} invalid, {len(unjudged)} not judged")
    ms = [t for t, _ in times]
    print(f"compile, ms of CPU: median {share(ms, 0.5):.2f}, p99 {share(ms, 0.99):.1f}, longest {max(times)[0]:.1f} ({max(times)[1]})")
    print(f"mask us at 128,000 tokens: median {share(masks, 0.5):.2f}, longest median {max(masks, default=-1):.2f}")
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main())
