#!/usr/bin/env python3
"""Asks `patchbay serve` by the official OpenAI client: completions, chats, embeddings, streams, structured output, errors, cancelling.

Run by the nightly tier, or by hand: tests/serve/openai_client.py --patchbay build/release/bin/patchbay
"""

import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/random"))
from pinned import into_environment  # noqa: E402

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["age"],
    "additionalProperties": False,
}


def completions(client):
    asked = dict(model="demo", prompt="Once upon a time", temperature=0, max_tokens=20)
    whole = client.completions.create(**asked)
    assert whole.choices[0].finish_reason == "length", whole
    assert whole.usage.completion_tokens == 20, whole
    parts = list(client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.text for p in parts for c in p.choices) == whole.choices[0].text
    assert parts[-1].usage.completion_tokens == 20 and not parts[-1].choices
    several = client.completions.create(**{**asked, "prompt": ["Once", "The king"]}, extra_body={"top_k": 3})
    assert [c.index for c in several.choices] == [0, 1]
    shown = client.completions.create(**asked, logprobs=2).choices[0]
    assert "".join(shown.logprobs.tokens) == shown.text == whole.choices[0].text
    assert all(x <= 0 for x in shown.logprobs.token_logprobs)


def chats(client):
    asked = dict(model="demo", messages=[{"role": "user", "content": "The wolf said"}], temperature=0, max_tokens=16)
    whole = client.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
    message = whole.choices[0].message
    assert message.role == "assistant" and message.content, whole
    entries = whole.choices[0].logprobs.content
    assert bytes(b for e in entries for b in e.bytes).decode() == message.content
    assert all(len(e.top_logprobs) == 2 for e in entries)
    parts = list(client.chat.completions.create(**asked, stream=True))
    assert parts[0].choices[0].delta.role == "assistant"
    assert "".join(p.choices[0].delta.content or "" for p in parts) == message.content
    assert [p.choices[0].finish_reason for p in parts][-1] == "length"
    several = client.chat.completions.create(**{**asked, "temperature": 0.9}, n=2, seed=3)
    assert len(several.choices) == 2


def embeddings(client):
    asked = dict(model="demo", input=["Once upon a time", "The wolf said", "Once upon a time"])
    one, two, three = client.embeddings.create(**asked, encoding_format="float").data
    assert one.embedding == three.embedding != two.embedding
    assert [x.index for x in (one, two, three)] == [0, 1, 2]
    assert abs(sum(x * x for x in one.embedding) - 1) < 1e-5
    packed = client.embeddings.create(**asked)  # as base64, which the client decodes
    assert max(abs(a - b) for a, b in zip(packed.data[0].embedding, one.embedding)) < 1e-7
    assert packed.usage.total_tokens == packed.usage.prompt_tokens > 3
    ids = client.post("../tokenize", cast_to=dict, body={"prompt": asked["input"][1]})["tokens"]
    assert client.embeddings.create(model="demo", input=ids).data[0].embedding == packed.data[1].embedding


def structured(client):
    answer = client.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "How old?"}], temperature=0, max_tokens=60,
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}})
    assert isinstance(json.loads(answer.choices[0].message.content)["age"], int), answer
    choice = client.completions.create(model="demo", prompt="So? ", max_tokens=9,
                                       extra_body={"structured_outputs": {"choice": ["yes", "no"]}})
    assert choice.choices[0].text in ("yes", "no"), choice


def errors(client, openai, url):
    def raised(kind, **asked):
        try:
            client.completions.create(**{"model": "demo", "prompt": "a", "max_tokens": 1, **asked})
        except kind as error:
            return error
        raise AssertionError(f"{asked}: nothing was raised")

    assert raised(openai.BadRequestError, max_tokens="ten").param == "max_tokens"
    assert "expected 0 to 100" in raised(openai.BadRequestError, temperature=-1).message
    assert raised(openai.NotFoundError, model="gpt").code == "not_found"
    try:
        client.embeddings.create(model="demo", input="a", dimensions=2)
        raise AssertionError("dimensions were taken")
    except openai.BadRequestError as error:
        assert error.param == "dimensions", error
    stranger = openai.OpenAI(base_url=url, api_key="wrong", max_retries=0)
    try:
        stranger.models.list()
        raise AssertionError("a wrong key was taken")
    except openai.AuthenticationError:
        pass


def cancelling(client):
    stream = client.completions.create(model="demo", prompt="The king", max_tokens=1500, stream=True,
                                       extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    deadline = time.monotonic() + 60
    while True:  # the metrics say when its request has ended: no sooner than the step under way
        text = client.get("../metrics", cast_to=str)
        if re.search(r'patchbay_requests_finished_total\{reason="abort"\} 1$', text, re.M):
            break
        assert time.monotonic() < deadline, f"the request has not ended within a minute\n{text}"
    assert re.search(r'patchbay_kv_pages\{state="used"\} 0$', text, re.M), text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--patchbay", default=ROOT / "build/release/bin/patchbay", type=pathlib.Path)
    given = parser.parse_args()
    program = given.patchbay.resolve()
    import openai

    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
        template.write(TEMPLATE)
        template.flush()
        server = subprocess.Popen(
            [program, "serve", "--model", ROOT / "models/demo-draft", "--served-model-name", "demo", "--port", "0",
             "--api-key", "secret", "--chat-template", template.name, "--threads", "1"],
            stderr=subprocess.PIPE, text=True)
        url = server.stderr.readline().split()[-1] + "/v1"
        client = openai.OpenAI(base_url=url, api_key="secret", max_retries=0, timeout=120)
        try:
            assert client.models.list().data[0].id == "demo"
            for part in (completions, chats, embeddings, structured, cancelling):
                part(client)
                print(f"{part.__name__}: as expected")
            errors(client, openai, url)
            print("errors: as expected")
        finally:
            server.send_signal(signal.SIGTERM)
            code = server.wait()
        assert code == 0, f"the server ended with {code}"
        print("ending by SIGTERM: as expected")


if __name__ == "__main__":
    into_environment(pathlib.Path(__file__), ROOT / "build/openai-venv", HERE / "requirements-openai.txt")
    main()
