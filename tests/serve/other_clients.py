#!/usr/bin/env python3
"""Asks `patchbay serve` by clients that know OpenAI's API and vLLM's from elsewhere: litellm, through which many programs call
models, and guidellm, which measures servers.

Run by the nightly tier, or by hand: tests/serve/other_clients.py --patchbay build/release/bin/patchbay
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/random"))
from pinned import into_environment  # noqa: E402

MODEL = ROOT / "models/demo-draft"
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["age"],
          "additionalProperties": False}
CHAT = [{"role": "user", "content": "The wolf said"}]


def raised(kind, call, **asked):
    try:
        call(**asked)
    except kind as error:
        return error
    raise AssertionError(f"{asked}: nothing was raised")


def ask_by_litellm(url: str) -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a list of prices
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    for model in ("openai/demo", "hosted_vllm/demo"):  # its two ways to such a server
        asked = dict(model=model, api_base=url, api_key="secret", messages=CHAT, temperature=0, max_tokens=12, num_retries=0)
        whole = litellm.completion(**asked)
        text = whole.choices[0].message.content
        assert text and whole.usage.completion_tokens == 12 and whole.choices[0].finish_reason == "length", whole
        parts = list(litellm.completion(**asked, stream=True, stream_options={"include_usage": True}))
        assert "".join(p.choices[0].delta.content or "" for p in parts if p.choices) == text, parts
        assert parts[-1].usage.completion_tokens == 12, parts[-1]
        logprobs = litellm.completion(**asked, logprobs=True, top_logprobs=2).choices[0].logprobs
        assert len(logprobs.content) == 12 and len(logprobs.content[0].top_logprobs) == 2, logprobs
        schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}
        person = litellm.completion(**asked | {"max_tokens": 60}, response_format=schema).choices[0].message.content
        assert isinstance(json.loads(person)["age"], int), person
        several = litellm.completion(**asked | {"temperature": 0.9}, n=3, seed=1, stop=["king"], presence_penalty=0.5)
        assert len(several.choices) == 3, several
        stranger = raised(litellm.AuthenticationError, litellm.completion, **asked | {"api_key": "wrong"})
        assert "no valid API key" in str(stranger), stranger
        refused = raised(litellm.BadRequestError, litellm.completion, **asked | {"temperature": -1})
        assert "expected 0 to 100" in str(refused), refused
        embedded = litellm.embedding(model=model, api_base=url, api_key="secret", input=["The king", "The wolf"],
                                     encoding_format="float")
        assert [len(e["embedding"]) for e in embedded.data] == [len(embedded.data[0]["embedding"])] * 2, embedded
    completed = litellm.text_completion(model="text-completion-openai/demo", api_base=url, api_key="secret",
                                        prompt=["Once", "The king"], temperature=0, max_tokens=8)
    assert len(completed.choices) == 2 and completed.choices[1].text, completed


def measure_by_guidellm(url: str, folder: pathlib.Path) -> None:
    """20 requests for chats and 20 for completions, at 4 a time: all must succeed, with the tokens that were asked for."""
    base = url.removesuffix("/v1")
    data = "kind=synthetic_text,prompt_tokens=40,output_tokens=16"
    for form in ("/v1/chat/completions", "/v1/completions"):
        out = folder / (form.strip("/").replace("/", "-") + ".json")
        subprocess.run(
            [pathlib.Path(sys.prefix) / "bin/guidellm", "run", "--backend",
             f"kind=openai_http,target={base},model=demo,api_key=secret,request_format={form}",
             "--profile", "kind=concurrent,streams=4", "--constraint", "kind=max_requests,count=20", "--data", data,
             "--tokenizer", f"kind=huggingface_auto,model={MODEL}", "--output", f"kind=json,path={out}", "--disable-console"],
            check=True, cwd=folder, env=os.environ | {"HF_HUB_OFFLINE": "1"})
        report = json.loads(out.read_text())
        totals = report["benchmarks"][0]["metrics"]["request_totals"]
        assert totals["successful"] == 20 and totals["errored"] == 0, totals
        tokens = report["benchmarks"][0]["metrics"]["output_token_count"]["successful"]
        assert tokens["min"] == tokens["max"] == 16, tokens


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--patchbay", default=ROOT / "build/release/bin/patchbay", type=pathlib.Path)
    program = parser.parse_args().patchbay.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "chat.jinja").write_text(TEMPLATE)
        server = subprocess.Popen(
            [program, "serve", "--model", MODEL, "--served-model-name", "demo", "--port", "0", "--api-key", "secret",
             "--chat-template", folder / "chat.jinja", "--threads", "1", "--admin", "none"], stderr=subprocess.PIPE, text=True)
        url = server.stderr.readline().split()[-1] + "/v1"
        try:
            ask_by_litellm(url)
            print("litellm: as expected")
            measure_by_guidellm(url, folder)
            print("guidellm: as expected")
        finally:
            server.send_signal(signal.SIGTERM)
            code = server.wait()
        assert code == 0, f"the server ended with {code}"


if __name__ == "__main__":
    into_environment(pathlib.Path(__file__), ROOT / "build/clients-venv", HERE / "requirements-clients.txt")
    main()
