"""A client of somebody else's: chat completions by the standard library, plainly and so not always right.

It is a program of its own, as `ClientProgram` starts them: a question per line, a reading per line.
"""

import json
import sys
from http.client import HTTPConnection, IncompleteRead
from typing import Any
from urllib.parse import urlsplit


def ask(question: dict[str, Any]) -> dict[str, Any]:
    if question["wire"] != "openai":
        return {"error": {"message": "speaks chat completions only"}}
    place = urlsplit(question["base_url"])
    connection = HTTPConnection(place.hostname or "", place.port, timeout=10)
    body = {"model": question["model"], "messages": wire_messages(question["messages"])}
    headers = {"authorization": f"Bearer {question['api_key']}", "content-type": "application/json"}
    asked = json.dumps({**body, "stream": question["stream"]})
    connection.request("POST", f"{place.path}/chat/completions", asked, headers)
    try:
        response = connection.getresponse()
        text = response.read().decode()
    except (IncompleteRead, ConnectionError) as error:
        return failed("incomplete_stream", str(error))
    finally:
        connection.close()
    if response.status != 200:
        return failed("auth" if response.status == 401 else "server_error", f"status {response.status}")
    return streamed(text) if question["stream"] else whole(json.loads(text))


def wire_messages(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        message["raw"] or {"role": message["role"], "content": message["content"]} for message in messages
    ]


def failed(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message}}


def streamed(text: str) -> dict[str, Any]:
    said, ended = "", "stop"
    for line in text.split("\n"):
        if line.startswith("data: {"):
            (choice,) = json.loads(line.removeprefix("data: "))["choices"]
            said += choice["delta"].get("content") or ""
            ended = choice["finish_reason"] or ended
    return {"text": said, "finish_reason": ended, "raw": {"role": "assistant", "content": said}}


def whole(answer: dict[str, Any]) -> dict[str, Any]:
    (choice,) = answer["choices"]
    return {"text": choice["message"]["content"] or "", "finish_reason": choice["finish_reason"]}


def main() -> None:
    for line in sys.stdin:
        try:
            reading = ask(json.loads(line))
        except Exception as error:  # noqa: BLE001 - seam: a client that breaks has not read it
            reading = {"error": {"message": repr(error)}}
        print(json.dumps(reading), flush=True)


if __name__ == "__main__":
    main()
