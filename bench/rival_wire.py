"""Reads the wire cases with the official SDKs, in the Python that has them: a client of `bench wire`.

`dialoom bench wire --client ".venv-bench/bin/python bench/rival_wire.py"` shows their score. Each wire is
read by its own SDK, with its stream helper, its retries and its typed errors. It stands alone: the rival's
Python has nothing of dialoom.
"""

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

KINDS = {
    "RateLimitError": "rate_limit",
    "OverloadedError": "overloaded",
    "AuthenticationError": "auth",
    "PermissionDeniedError": "auth",
    "BadRequestError": "bad_request",
    "NotFoundError": "bad_request",
    "UnprocessableEntityError": "bad_request",
    "ConflictError": "server_error",
    "ServiceUnavailableError": "overloaded",
    "InternalServerError": "server_error",
    "APITimeoutError": "timeout",
    "APIConnectionError": "connection",
    "RemoteProtocolError": "incomplete_stream",
    "ReadError": "incomplete_stream",
    "APIResponseValidationError": "invalid_response",
    "JSONDecodeError": "invalid_response",
    "APIError": "server_error",
}
"""What the SDKs call their errors, and what the cases call them."""
RETRIED = {"rate_limit", "overloaded", "server_error", "timeout", "connection", "incomplete_stream"}
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "pause",
    "function_call": "tool_calls",
}


def by_openai(question: Mapping[str, Any]) -> dict[str, Any]:
    made = importlib.import_module("openai").OpenAI
    with made(base_url=question["base_url"], api_key=question["api_key"]) as client:
        asked: dict[str, Any] = {
            "model": question["model"],
            "messages": [openai_message(message) for message in question["messages"]],
        }
        if question["tools"]:
            asked["tools"] = [{"type": "function", "function": dict(tool)} for tool in question["tools"]]
        if question["stream"]:
            with client.chat.completions.stream(**asked) as stream:
                answer = stream.get_final_completion()
        else:
            answer = client.chat.completions.create(**asked)
    (choice,) = answer.choices
    said = choice.message
    calls = [(call.id, call.function.name, call.function.arguments) for call in said.tool_calls or ()]
    usage = answer.usage
    return {
        "text": said.content or "",
        "reasoning": getattr(said, "reasoning_content", None) or "",
        "refusal": said.refusal or "",
        "finish_reason": finish(choice.finish_reason),
        "tool_calls": [call_of(*call) for call in calls],
        "usage": {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
        if usage
        else {},
    }


def by_anthropic(question: Mapping[str, Any]) -> dict[str, Any]:
    made = importlib.import_module("anthropic").Anthropic
    with made(base_url=question["root"], api_key=question["api_key"]) as client:
        heads = [message["content"] for message in question["messages"] if message["role"] == "system"]
        talk = [message for message in question["messages"] if message["role"] != "system"]
        asked: dict[str, Any] = {
            "model": question["model"],
            "max_tokens": 1000,
            "messages": [anthropic_message(message) for message in talk],
        }
        if heads:
            asked["system"] = "\n\n".join(heads)
        if question["tools"]:
            asked["tools"] = [
                {
                    "name": tool["name"],
                    "description": tool["description"],
                    "input_schema": tool["parameters"],
                }
                for tool in question["tools"]
            ]
        if question["stream"]:
            with client.messages.stream(**asked) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**asked)
    blocks = answer.content
    return {
        "text": "".join(block.text for block in blocks if block.type == "text"),
        "reasoning": "".join(block.thinking for block in blocks if block.type == "thinking"),
        "finish_reason": finish(answer.stop_reason),
        "tool_calls": [
            {"id": block.id, "name": block.name, "arguments": block.input}
            for block in blocks
            if block.type == "tool_use"
        ],
        "usage": {
            "input_tokens": answer.usage.input_tokens,
            "output_tokens": answer.usage.output_tokens,
            "cache_read_tokens": answer.usage.cache_read_input_tokens,
            "cache_write_tokens": answer.usage.cache_creation_input_tokens,
        },
        "raw": [block.model_dump(mode="json", exclude_none=True) for block in blocks],
    }


def openai_message(message: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    if message["role"] == "tool":
        said["tool_call_id"] = message["tool_call_id"]
    if message["tool_calls"]:
        said["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            }
            for call in message["tool_calls"]
        ]
    return said


def anthropic_message(message: Mapping[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        block = {
            "type": "tool_result",
            "tool_use_id": message["tool_call_id"],
            "content": message["content"],
        }
        return {"role": "user", "content": [block]}
    if message["raw"]:
        return {"role": message["role"], "content": message["raw"]}
    text = [{"type": "text", "text": message["content"]}] if message["content"] else []
    used = [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
        for call in message["tool_calls"]
    ]
    return {"role": message["role"], "content": [*text, *used]}


def call_of(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    try:
        return {"id": call_id, "name": name, "arguments": json.loads(arguments)}
    except ValueError:
        return {"id": call_id, "name": name, "problem": "truncated"}


def finish(reason: str | None) -> str:
    return FINISHES.get(reason or "stop", reason or "stop")


def failure(error: Exception) -> dict[str, Any]:
    """Say what went wrong by the SDK's own class, or the nearest class above it that has a kind."""
    names = [base.__name__ for base in type(error).__mro__]
    kind = next((KINDS[name] for name in names if name in KINDS), None)
    if kind == "rate_limit" and getattr(error, "code", None) == "insufficient_quota":
        kind = "quota"
    if kind == "bad_request" and getattr(error, "code", None) == "context_length_exceeded":
        kind = "context_window"
    return {"error": {"kind": kind, "message": str(error), "retryable": kind in RETRIED if kind else None}}


READERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "openai": by_openai,
    "anthropic": by_anthropic,
}


def main() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        try:
            reading = READERS[question["wire"]](question)
        except Exception as error:  # noqa: BLE001 - seam: an SDK may raise anything, and that is its reading
            reading = failure(error)
        print(json.dumps(reading), flush=True)


if __name__ == "__main__":
    main()
