"""Channels from a class that describes the state."""

from dataclasses import dataclass, field
from typing import Annotated, NotRequired, TypedDict

import msgspec
import pytest

from dialoom.graph import START, Graph, GraphBuilder, GraphBuildError, Reducers


class AsTypedDict(TypedDict):
    name: str
    said: Annotated[list[str], "a note", Reducers.append]
    note: NotRequired[str]


@dataclass
class AsDataclass:
    name: str
    said: Annotated[list[str], Reducers.append] = field(default_factory=list)
    note: str = "none"


class AsStruct(msgspec.Struct):
    name: str
    said: Annotated[list[str], Reducers.append] = []
    note: str = "none"


def greeting(state: type) -> Graph:
    builder = GraphBuilder("greeting", state=state)
    builder.add_node("greet", lambda ctx: {"said": [f"hello {ctx.state['name']}"]})
    builder.add_edge(START, "greet")
    return builder.build()


@pytest.mark.parametrize(
    ("state", "more"), [(AsTypedDict, {}), (AsDataclass, {"note": "none"}), (AsStruct, {"note": "none"})]
)
def test_fields_become_channels(state: type, more: dict[str, str]) -> None:
    result = greeting(state).run_sync({"name": "Ada"})
    assert result.state == {"name": "Ada", "said": ["hello Ada"], **more}


@pytest.mark.parametrize("state", [AsTypedDict, AsDataclass, AsStruct])
def test_their_types_are_checked(state: type) -> None:
    assert "Expected `str`, got `int`" in greeting(state).run_sync({"name": 1}).errors[0].message
    assert "Expected `str`, got `int`" in greeting(state).run_sync({"note": 1}).errors[0].message


def test_a_class_that_describes_nothing_is_a_problem_among_others() -> None:
    builder = GraphBuilder("odd", state=int)
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    assert [problem.code for problem in refused.value.problems] == ["bad-state", "no-nodes"]


def test_annotations_that_mean_nothing_are_a_problem_too() -> None:
    class Broken(TypedDict):
        name: "NoSuchType"  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(GraphBuildError, match=r"bad-state.*cannot make channels of it: name 'NoSuchType'"):
        greeting(Broken)
