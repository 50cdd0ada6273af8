"""The doctor finds out what a server can really do."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dialoom.base.errors import UsageError
from dialoom.llm import MockProvider, OpenAIProvider, ProviderError, Usage, WireProfile
from dialoom.llm.doctor import DoctorLimits, Finding, Report, diagnose
from dialoom.llm.profile import DEFAULT_PROFILE
from dialoom.net import Httpx2Transport
from dialoom.testing.clock import ManualClock
from dialoom.testing.wire import WireReply, WireRequest, WireServer

LINE_TOKENS = 20


class FakeServer:
    """A chat completions server whose abilities are chosen."""

    def __init__(self, **able: Any) -> None:
        self.able = able

    def __call__(self, request: WireRequest) -> WireReply:
        if request.path == "/v1/models":
            listed = [{"id": "tiny", "context_length": self.able.get("listed", 8192)}]
            return self.json({"data": listed}) if self.able.get("models", True) else WireReply(status=404)
        body: Any = request.json()
        if request.path == "/v1/embeddings":
            vectors = [{"index": at, "embedding": [0.5, 0.5]} for at in range(len(body["input"]))]
            return self.json({"data": vectors}) if self.able.get("embeddings") else WireReply(status=501)
        if "stream_options" in body and not self.able.get("stream_options", True):
            return self.refusal("unknown field stream_options")
        return self.chat(body)

    def chat(self, body: Any) -> WireReply:
        prompt = body["messages"][-1]["content"]
        if isinstance(prompt, list):
            return self.look(prompt)
        size = LINE_TOKENS * prompt.count("\n")
        window = self.able.get("window", 100_000)
        if size > window and self.able.get("honest", True):
            return self.refusal(
                f"request ({size} tokens) exceeds the available context size ({window} tokens)"
            )
        message = {"role": "assistant", "content": self.able.get("text", "Eight.")}
        if "tools" in body and self.able.get("tools"):
            if self.able["tools"] == "refused":
                return self.refusal("tiny does not support tools")
            call = {"id": "c", "function": {"name": "add", "arguments": self.able["tools"]}}
            message["tool_calls"] = [{**call, "id": f"c{at}"} for at in range(1 + ("twice" in prompt))]
        if "response_format" in body and self.able.get("schema") == "enforced":
            message["content"] = '{"code":"zebra-7"}'
        if "response_format" in body and self.able.get("schema") == "refused":
            return self.refusal("response_format is not supported")
        if "secret" in prompt and size <= window and self.able.get("repeats"):
            message["content"] = "Butterfly-42"
        message |= self.able.get("message", {})
        usage = (
            {"prompt_tokens": min(size, window), "completion_tokens": 2}
            if self.able.get("counts", True)
            else None
        )
        choice = {"message": message, "finish_reason": "stop"}
        return self.json({"id": "cc", "model": "tiny", "choices": [choice], "usage": usage})

    def look(self, parts: Any) -> WireReply:
        (shown,) = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        assert shown.startswith("data:image/png;base64,")
        seen = self.able.get("sees", "Yellow, purple.")
        if seen == "refused":
            return self.refusal("image input is not supported")
        if seen == "busy":
            return WireReply(status=429, body=(b"{}",))
        message = {"role": "assistant", "content": seen}
        usage = {"prompt_tokens": 90, "completion_tokens": 2}
        choice = {"message": message, "finish_reason": "stop"}
        return self.json({"choices": [choice], "usage": usage if self.able.get("counts", True) else None})

    @staticmethod
    def json(value: Any) -> WireReply:
        return WireReply(headers={"content-type": "application/json"}, body=(msgspec.json.encode(value),))

    @staticmethod
    def refusal(message: str) -> WireReply:
        return WireReply(status=400, body=(msgspec.json.encode({"error": {"message": message}}),))


async def examine(server: Callable[[WireRequest], WireReply], **options: Any) -> Report:
    async with WireServer(server) as served:
        return await diagnose(f"{served.url}/v1", "tiny", api_key="sk-secret", **options)


def verdicts(report: Report) -> dict[str, str]:
    return {finding.probe: finding.verdict for finding in report.findings}


def detail(report: Report, probe: str) -> str:
    return next(finding.detail for finding in report.findings if finding.probe == probe)


async def test_a_server_that_can_everything_needs_no_profile() -> None:
    server = FakeServer(
        schema="enforced", tools='{"a":2,"b":3}', embeddings=True, message={"reasoning_content": "hm"}
    )
    report = await examine(server)
    assert verdicts(report) == {
        "models": "yes",
        "chat": "yes",
        "token counts": "yes",
        "reasoning": "yes",
        "json schema": "yes",
        "tools": "yes",
        "parallel calls": "yes",
        "pictures": "yes",
        "long prompts": "yes",
        "embeddings": "yes",
    }
    assert report.ok
    assert report.profile == DEFAULT_PROFILE
    assert report.profile_json() == "{}"
    assert report.context_window == 8192
    assert detail(report, "embeddings") == "2 dimensions"
    assert (report.usage.input_tokens or 0) > 5000


async def test_a_server_that_can_little_gets_a_profile_that_says_so() -> None:
    little = FakeServer(schema="ignored", text="<think>eight</think>Eight.", sees="refused")
    report = await examine(little)
    assert verdicts(report) | {"long prompts": "", "models": ""} == {
        "models": "",
        "chat": "yes",
        "token counts": "yes",
        "reasoning": "partly",
        "json schema": "no",
        "tools": "no",
        "pictures": "no",
        "long prompts": "",
        "embeddings": "no",
    }
    assert report.profile == WireProfile(
        think_tags=("<think>", "</think>"), structured_mode="prompt", tool_mode="off", tool_files=()
    )
    assert msgspec.json.decode(report.profile_json(), type=WireProfile) == report.profile
    assert "answered with prose" in detail(report, "tools")


async def test_tools_are_had_by_schema_where_only_that_is_enforced() -> None:
    for tools in (None, "refused"):
        report = await examine(FakeServer(schema="enforced", tools=tools))
        assert report.profile == WireProfile(tool_mode="schema")
    wrong = await examine(FakeServer(schema="refused", tools='{"a":"two"}'))
    assert verdicts(wrong)["tools"] == "partly"
    assert wrong.profile == WireProfile(structured_mode="prompt")
    cut = await examine(FakeServer(tools='{"a":'))
    assert detail(cut, "tools") == "called, but with arguments that are truncated"


async def test_values_are_had_by_a_tool_where_no_schema_is_enforced_and_tools_can_be_forced() -> None:
    for schema in ("ignored", "refused"):
        report = await examine(FakeServer(schema=schema, tools='{"a":2,"b":3}'))
        assert verdicts(report)["json schema"] == "no"
        assert report.profile == WireProfile(structured_mode="tool")


async def test_a_profile_that_sends_no_schema_is_not_blamed_on_the_server() -> None:
    async with WireServer(FakeServer(tools='{"a":2,"b":3}')) as served:
        mine = WireProfile(structured_mode="tool")
        async with OpenAIProvider(f"{served.url}/v1", profile=mine) as provider:
            report = await diagnose(provider, "tiny")
        asked = [request.json() for request in served.requests if request.method == "POST"]
    assert not any("response_format" in body for body in asked)
    assert detail(report, "json schema") == "none is sent: the profile asks for values in tool mode"
    assert report.profile == mine


async def test_a_prompt_that_is_cut_without_a_word_is_found() -> None:
    report = await examine(FakeServer(window=2048, honest=False))
    assert verdicts(report)["long prompts"] == "no"
    assert "6020 tokens are cut to 2048 without a word" in detail(report, "long prompts")
    assert report.context_window == 2048


async def test_a_prompt_that_is_refused_tells_the_window() -> None:
    report = await examine(FakeServer(window=4096))
    assert verdicts(report)["long prompts"] == "yes"
    assert (
        detail(report, "long prompts") == "refused with an error, as it should be; the window is 4096 tokens"
    )
    assert report.context_window == 4096


async def test_a_prompt_that_comes_back_was_read_whole_whatever_is_counted() -> None:
    report = await examine(FakeServer(window=6000, repeats=True))
    assert verdicts(report)["long prompts"] == "yes"
    uncounted = await examine(FakeServer(counts=False))
    assert verdicts(uncounted)["long prompts"] == "unknown"
    assert verdicts(uncounted)["token counts"] == "no"


@pytest.mark.parametrize(
    ("sees", "verdict", "said", "tool_files"),
    [
        ("Gold above, violet below", "yes", "a picture is described as it is", DEFAULT_PROFILE.tool_files),
        ("It is all purple.", "partly", "one of the two colours", DEFAULT_PROFILE.tool_files),
        (
            "I see no picture.",
            "no",
            "taken, and not described as it is; what tools show is told in words",
            (),
        ),
        ("refused", "no", "image input is not supported", ()),
        ("busy", "unknown", "429", DEFAULT_PROFILE.tool_files),
    ],
)
async def test_whether_pictures_are_seen_is_found_out_by_one(
    sees: str, verdict: str, said: str, tool_files: tuple[str, ...]
) -> None:
    report = await examine(FakeServer(sees=sees, schema="enforced", tools='{"a":2,"b":3}'))
    assert (verdicts(report)["pictures"], report.profile.tool_files) == (verdict, tool_files)
    assert said in detail(report, "pictures")


async def test_a_server_that_refuses_to_count_in_a_stream_is_not_asked_to() -> None:
    report = await examine(FakeServer(stream_options=False))
    assert report.ok
    assert report.profile.usage_in_stream is False


async def test_a_model_that_is_not_listed_may_answer_all_the_same() -> None:
    async with WireServer(FakeServer()) as served, Httpx2Transport() as transport:
        other = await diagnose(f"{served.url}/v1", "other", transport=transport)
        unnamed = await diagnose(f"{served.url}/v1", transport=transport)
    assert (verdicts(other)["models"], other.ok) == ("partly", True)
    assert detail(unnamed, "models") == "1 listed"
    assert unnamed.lines()[0].endswith("/v1, model of its own choice")


async def test_a_server_that_cannot_be_reached_is_a_finding() -> None:
    report = await diagnose("http://127.0.0.1:9/v1", "tiny", api_key="sk-secret")
    assert verdicts(report) == {"models": "no", "chat": "no", "embeddings": "no"}
    assert not report.ok
    assert "sk-secret" not in "\n".join(report.lines())


async def test_any_provider_can_be_examined_and_any_failure_is_a_finding() -> None:
    llm = MockProvider().queue_text("Eight.")
    for _ in range(5):
        llm.queue_error(ProviderError("server_error", "no luck"))
    report = await diagnose(llm, "mock-model")
    assert verdicts(report) == {
        "models": "yes",
        "chat": "yes",
        "token counts": "no",
        "reasoning": "no",
        "json schema": "no",
        "tools": "no",
        "pictures": "no",
        "long prompts": "unknown",
    }
    assert report.server == "mock"


async def test_parallel_calls_that_fail_are_a_finding() -> None:
    llm = MockProvider().queue_text("Eight.").queue_text('{"code":"zebra-7"}')
    llm.queue_tool_call("c", "add", {"a": 1, "b": 2}).queue_error(ProviderError("server_error", "no luck"))
    llm.queue_text("x").queue_text("x").queue_text("x").queue_text("x")
    report = await diagnose(llm, "mock-model")
    assert verdicts(report)["parallel calls"] == "no"


async def test_a_broken_answer_is_not_the_same_as_no_answer() -> None:
    llm = MockProvider().queue_error(ProviderError("server_error", "died"))
    assert verdicts(await diagnose(llm)) == {"models": "yes", "chat": "unknown"}


async def test_what_there_is_no_time_for_is_left_out() -> None:
    clock = ManualClock()

    class Slow(MockProvider):
        async def models(self) -> Any:
            await clock.advance(100)
            return await super().models()

    report = await diagnose(Slow().queue_text("Eight."), limits=DoctorLimits(seconds=60), clock=clock)
    assert [each.detail for each in report.findings[-4:]] == ["no time was left"] * 4
    assert report.seconds == 100


def test_a_report_is_a_table_for_people() -> None:
    report = Report(
        server="http://host/v1",
        model="tiny",
        findings=(
            Finding(probe="chat", verdict="yes"),
            Finding(probe="json schema", verdict="unknown", detail="no time was left"),
        ),
        profile=WireProfile(tool_mode="off"),
        usage=Usage(input_tokens=10, output_tokens=5),
        seconds=1.25,
    )
    assert report.lines() == [
        "http://host/v1, model tiny",
        "  chat         yes",
        "  json schema  ?       no time was left",
        "2 probes, 15 tokens, 1.2 s",
    ]
    assert report.profile_json() == '{\n  "tool_mode": "off"\n}'


@pytest.mark.parametrize("url", ["ftp://x", "http://user:pw@host/v1"])
async def test_an_address_that_is_none_is_the_callers_mistake(url: str) -> None:
    with pytest.raises(UsageError, match=r"http address|user name"):
        await diagnose(url)
