"""The command against a real model: what it says is not judged, that it cites within bounds is."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, piped
from tests.local_model import LocalModel

KB = Path(__file__).parents[2] / "examples/kb"

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(240)]


@pytest.mark.parametrize(
    "question",
    ["For how many years are the hitch arm and coupling covered?", "退货验货之后，退款几天能到账？"],
)
def test_a_real_model_streams_an_answer_that_cites_only_what_it_was_given(
    terminal: Terminal, local_model: LocalModel, question: str
) -> None:
    server = ("--base-url", local_model.base_url, "--model", "openai:local", "--max-tokens", "64")
    shown = terminal.run("ask", question, "--docs", str(KB), *server, "--top-k", "4", "--json")
    assert shown.code == 0, shown.err
    answer = json.loads(shown.out)
    assert answer["answer"]
    assert answer["stop_reason"] == "finished"
    assert answer["mode"] == "model"
    assert answer["usage"]["output_tokens"] > 0
    assert set(answer["cited_indexes"]) <= set(range(1, len(answer["sources"]) + 1))


def test_what_a_real_model_streams_to_the_terminal_is_its_answer(
    terminal: Terminal, local_model: LocalModel
) -> None:
    server = ("--base-url", local_model.base_url, "--model", "openai:local", "--max-tokens", "32")
    shown = terminal.run("ask", "What fee is kept on return?", "--docs", str(KB), *server, "--top-k", "3")
    assert shown.code == 0, shown.err
    assert len(shown.out.strip()) > 0
    assert f"openai:local at {local_model.base_url}" in shown.err


def test_what_a_real_model_streams_to_a_service_adds_up_to_its_answer(
    terminal: Terminal, local_model: LocalModel
) -> None:
    server = ("--base-url", local_model.base_url, "--model", "openai:local", "--max-tokens", "48")
    questions = ["What fee is kept on return?", "退货验货之后，退款几天能到账？"]
    requests: list[dict[str, object]] = [
        {"id": number, "op": "query", "query": question} for number, question in enumerate(questions)
    ]
    done = piped("--docs", str(KB), *server, "--top-k", "3", lines=requests, within=200)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for number in range(len(questions)):
        *deltas, final = [line for line in lines if line["id"] == number]
        assert "".join(delta["text"] for delta in deltas) == final["answer"]
        assert (final["event"], final["ok"], final["stop_reason"]) == ("final", True, "finished")
        assert set(final["cited_indexes"]) <= set(range(1, len(final["sources"]) + 1))
        assert final["cited_sources"] == [final["sources"][index - 1] for index in final["cited_indexes"]]
