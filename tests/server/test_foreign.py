"""Clients of others against our server, each in an interpreter of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import TOKEN

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers" / "bin"
BOUND = 100.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (PEERS / "python").exists(), reason="NOTICE: no foreign clients: make .venv-peers/peers.stamp"
    ),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("echo")
    command = [sys.executable, "-m", "tests.server.echo_server", str(folder), "--short-streams"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield child.stdout.readline().strip()
        child.terminate()
        assert child.wait(BOUND) == 0


def run(program: str, *arguments: str, url: str, folder: Path | None = None, **environment: str) -> str:
    """Run a program of the peers in `folder` and return what it printed."""
    done = subprocess.run(
        [PEERS / program, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=BOUND, check=False,
        env={**os.environ, "BASE": url, "TOKEN": TOKEN, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


OPENAI = """
import json, os
import openai

client = openai.OpenAI(base_url=os.environ["BASE"] + "/v1", api_key=os.environ["TOKEN"], max_retries=0)
said = [{"role": "user", "content": "25 m 网格"}]
whole = client.chat.completions.create(model="echo", messages=said)
pieces, usage = [], None
for chunk in client.chat.completions.create(
    model="echo:echo", messages=said, stream=True, stream_options={"include_usage": True}
):
    usage = chunk.usage or usage
    pieces += [choice.delta.content or "" for choice in chunk.choices]
tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
called = client.chat.completions.create(model="echo", messages=said, tools=tools).choices[0]
call = called.message.tool_calls[0]
result = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
after = client.chat.completions.create(model="echo", messages=[*said, called.message, result], tools=tools)
vectors = client.embeddings.create(model="any", input=["wells", "井位"])
codes = []
for model, key in (("no-such", os.environ["TOKEN"]), ("echo", "wrong")):
    try:
        client.with_options(api_key=key).chat.completions.create(model=model, messages=said)
    except openai.APIStatusError as error:
        codes.append(error.status_code)
print(json.dumps({
    "models": [model.id for model in client.models.list()],
    "whole": whole.choices[0].message.content, "usage": whole.usage.total_tokens,
    "stream": "".join(pieces), "counted": usage.total_tokens,
    "call": [call.function.name, call.function.arguments, called.finish_reason],
    "after": after.choices[0].message.content,
    "vectors": [len(each.embedding) for each in vectors.data], "codes": codes,
}))
"""


def test_the_openai_client_talks_streams_calls_tools_and_embeds(url: str) -> None:
    found = json.loads(run("python", "-c", OPENAI, url=url))
    assert found == {
        "models": ["echo:echo"],
        "whole": "You said: 25 m 网格 ",
        "usage": 8,
        "stream": "You said: 25 m 网格 ",
        "counted": 8,
        "call": ["weather", '{"city":"Oslo"}', "tool_calls"],
        "after": "You said: rain ",
        "vectors": [64, 64],
        "codes": [404, 401],
    }


ANTHROPIC = """
import json, os
import anthropic

client = anthropic.Anthropic(base_url=os.environ["BASE"], api_key=os.environ["TOKEN"], max_retries=0)
said = [{"role": "user", "content": "25 m 网格"}]
tools = [{"name": "weather", "input_schema": {"type": "object"}}]
common = {"model": "echo", "max_tokens": 100}
whole = client.messages.create(messages=said, system="Be brief.", **common)
with client.messages.stream(messages=said, **common) as stream:
    pieces = list(stream.text_stream)
    final = stream.get_final_message()
called = client.messages.create(messages=said, tools=tools, **common)
call = called.content[0]
result = {"type": "tool_result", "tool_use_id": call.id, "content": "rain"}
after = client.messages.create(
    messages=[*said, {"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}],
    tools=tools, **common,
)
with client.messages.stream(messages=said, tools=tools, **common) as stream:
    streamed = stream.get_final_message().content[0]
codes = []
for key in ("wrong", os.environ["TOKEN"]):
    try:
        client.with_options(api_key=key).messages.create(messages=said, model="no-such", max_tokens=1)
    except anthropic.APIStatusError as error:
        codes.append(error.status_code)
print(json.dumps({
    "whole": whole.content[0].text, "reason": whole.stop_reason, "usage": whole.usage.output_tokens,
    "stream": "".join(pieces), "final": final.content[0].text,
    "call": [call.name, call.input, called.stop_reason], "streamed": [streamed.name, streamed.input],
    "after": after.content[0].text, "codes": codes,
}))
"""


def test_the_anthropic_client_talks_streams_and_calls_tools(url: str) -> None:
    said = "You said: 25 m 网格 "
    assert json.loads(run("python", "-c", ANTHROPIC, url=url)) == {
        "whole": said,
        "reason": "end_turn",
        "usage": 5,
        "stream": said,
        "final": said,
        "call": ["weather", {"city": "Oslo"}, "tool_use"],
        "streamed": ["weather", {"city": "Oslo"}],
        "after": "You said: rain ",
        "codes": [401, 404],
    }


def test_the_llm_command_line_talks_to_us(url: str, tmp_path: Path) -> None:
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: ours\n  model_name: echo\n  api_base: {url}/v1\n  api_key_name: ours\n"
    )
    options = {"LLM_USER_PATH": str(tmp_path), "OPENAI_API_KEY": TOKEN}
    said = run("llm", "-m", "ours", "--key", TOKEN, "Which cells?", url=url, **options)
    assert said.strip() == "You said: Which cells?"


def test_no_call_of_the_document_ends_in_an_error_of_the_server(url: str, tmp_path: Path) -> None:
    run(
        "schemathesis", "run", f"{url}/openapi.json",
        "--header", f"Authorization: Bearer {TOKEN}",
        "--checks", "not_a_server_error,response_schema_conformance,content_type_conformance,"
        "status_code_conformance",
        "--phases", "fuzzing", "--max-examples", "20", "--workers", "2",
        "--suppress-health-check", "all", "--request-timeout", "20", "--seed", "1",
        "--no-color",
        url=url, folder=tmp_path,
    )  # fmt: skip
