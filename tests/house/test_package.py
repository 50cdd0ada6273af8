"""What people install: the wheel holds the package, its types and its licence, and a consumer runs on it."""

import builtins
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSUMER = """
from dialoom import END, START, GraphBuilder

builder = GraphBuilder("consumer")
builder.add_channel("text", type=str)
builder.add_node("upper", lambda ctx: {"text": ctx.state["text"].upper()})
builder.add_edge(START, "upper")
builder.add_edge("upper", END)
print(builder.build().run_sync({"text": "hello"}).state["text"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    return next(folder.glob("dialoom-*.whl"))


@pytest.mark.promise("docs-025")
def test_a_wheel_holds_the_package_its_types_and_the_licence_and_no_test(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        licence = next(name for name in names if name.endswith("/LICENSE"))
        assert archive.read(licence).decode().startswith("MIT License")
    assert "dialoom/py.typed" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"dialoom"}


def test_a_wheel_brings_the_page_where_it_was_built(wheel: Path) -> None:
    if not (ROOT / "src/dialoom/server/page/index.html").exists():
        pytest.skip("the page is not built here (npm); run make test")
    with zipfile.ZipFile(wheel) as archive:
        assert "dialoom/server/page/index.html" in archive.namelist()


@pytest.mark.slow
@pytest.mark.promise("docs-024")
def test_a_small_consumer_runs_on_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(tmp_path)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=100)
    isolated = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CONSUMER}"]
    done = subprocess.run(isolated, check=True, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.stdout == "HELLO\n"


def test_no_module_hides_a_builtin_from_who_imports_all_of_its_package() -> None:
    modules = {path.stem for path in (ROOT / "src" / "dialoom").rglob("*.py")} - {"__init__"}
    assert modules.isdisjoint(dir(builtins))


@pytest.mark.promise("docs-022", "docs-015")
def test_the_engine_needs_no_http_and_no_provider_package() -> None:
    code = "import sys, dialoom.graph, dialoom.net; print([m for m in sys.modules if m.startswith('httpx')])"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"
