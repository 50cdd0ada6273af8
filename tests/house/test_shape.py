"""The source keeps the shape our style asks for."""

from pathlib import Path

import pytest

from tests.house import shape

SOURCE = shape.read_tree(Path(__file__).parents[2] / "src")


def test_no_file_and_no_function_outgrows_its_reader() -> None:
    assert list(shape.size_problems(SOURCE)) == []


def test_no_function_takes_more_than_seven_things() -> None:
    assert list(shape.parameter_problems(SOURCE)) == []


def test_no_name_is_vague() -> None:
    assert list(shape.name_problems(SOURCE)) == []


def test_every_module_and_public_class_says_what_it_is() -> None:
    assert list(shape.docstring_problems(SOURCE)) == []


def test_no_module_imports_itself_through_others_not_even_for_types() -> None:
    assert shape.import_cycles(SOURCE) == []


@pytest.mark.parametrize("package", ["dialoom.base", "dialoom.graph"])
def test_the_engine_stands_on_the_standard_library_and_msgspec_alone(package: str) -> None:
    assert shape.foreign_imports(SOURCE, package, frozenset({"msgspec"})) == []


def test_models_are_spoken_to_without_any_vendor_package() -> None:
    allowed = frozenset({"msgspec", "jiter", "jsonschema_rs"})
    assert shape.foreign_imports(SOURCE, "dialoom.llm", allowed) == []


def test_the_import_check_sees_a_package_that_does_not_belong() -> None:
    source = {"p.a": "import numpy.linalg\nfrom os import path\nimport msgspec", "q.a": "import torch"}
    assert shape.foreign_imports(source, "p", frozenset({"msgspec"})) == ["p.a: numpy"]


def test_the_shape_check_sees_each_violation() -> None:
    """A gate that cannot close is no gate: each rule meets a source that breaks it."""
    long_function = "def f(): ...\ndef g():\n" + "    x = 1\n" * 60
    assert list(shape.size_problems({"m": '"""M."""\n' * 501})) == ["m: 501 lines, at most 500"]
    assert list(shape.size_problems({"m": long_function})) == ["m.g: 61 lines, at most 60"]
    assert list(shape.parameter_problems({"m": "def f(self, a, b, c, d, *, e, g, h, i): ..."})) == [
        "m.f: 8 parameters, at most 7"
    ]
    assert list(shape.name_problems({"m": "class ToolManager: ..."})) == [
        "m.ToolManager: name the thing it is"
    ]
    assert list(shape.docstring_problems({"m": "class A: ...", "n": "", "o": '"""O."""\nclass _B: ...'})) == [
        "m: no docstring",
        "m.A: no docstring",
    ]


def test_the_cycle_check_sees_imports_for_types_and_inside_functions() -> None:
    cycle = {
        "p": "",
        "p.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import B",
        "p.b": "def f():\n    from p import c",
        "p.c": "import p.a",
        "p.d": "from p.a import A",
    }
    assert shape.import_cycles(cycle) == [["p.a", "p.b", "p.c"]]
