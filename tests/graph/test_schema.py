"""Channels from a class that describes the state."""

import subprocess
import sys
from dataclasses import dataclass, field
from typing import Annotated, NotRequired, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field, StrictStr, field_validator

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


class AsPydantic(BaseModel):
    name: str = Field(min_length=1)
    said: Annotated[list[str], "a note", Reducers.append] = Field(default_factory=list)
    note: str = "none"


def greeting(state: type) -> Graph:
    builder = GraphBuilder("greeting", state=state)
    builder.add_node("greet", lambda ctx: {"said": [f"hello {ctx.state['name']}"]})
    builder.add_edge(START, "greet")
    return builder.build()


@pytest.mark.parametrize(
    ("state", "more"),
    [
        (AsTypedDict, {}),
        (AsDataclass, {"note": "none"}),
        (AsStruct, {"note": "none"}),
        (AsPydantic, {"note": "none"}),
    ],
)
def test_fields_become_channels(state: type, more: dict[str, str]) -> None:
    result = greeting(state).run_sync({"name": "Ada"})
    assert result.state == {"name": "Ada", "said": ["hello Ada"], **more}


@pytest.mark.parametrize("state", [AsTypedDict, AsDataclass, AsStruct, AsPydantic])
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


def test_bounds_of_a_pydantic_field_hold_for_every_write() -> None:
    class Bounded(BaseModel):
        name: str = Field(pattern="^[A-Z]")
        said: Annotated[list[str], Reducers.append] = Field(default=[], max_length=2)

    graph = greeting(Bounded)
    assert graph.run_sync({"name": "Ada"}).state == {"name": "Ada", "said": ["hello Ada"]}
    assert "matching regex" in graph.run_sync({"name": "ada"}).errors[0].message
    assert "length <= 2" in graph.run_sync({"name": "Ada", "said": ["1", "2", "3"]}).errors[0].message


def test_what_only_pydantic_could_check_is_a_problem() -> None:
    class Validated(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def stripped(cls, name: str) -> str:
            return name.strip()

    class Strict(BaseModel):
        name: StrictStr

    with pytest.raises(GraphBuildError, match="its validators would not run; check values in the node"):
        greeting(Validated)
    with pytest.raises(
        GraphBuildError, match=r"field 'name' is constrained by Strict\(.*not checked at a write"
    ):
        greeting(Strict)


def test_a_graph_never_imports_pydantic_itself() -> None:
    code = """
import sys
from dataclasses import dataclass
from dialoom.graph import GraphBuilder
@dataclass
class State:
    name: str
GraphBuilder("g", state=State)
assert "pydantic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
