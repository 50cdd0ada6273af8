"""Packages that only make files for tests may be missing: then the tests of such files are left out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BLOCKS = "import sys\nsys.modules.update(dict.fromkeys(['reportlab', 'docx']))\n"


@pytest.mark.slow
@pytest.mark.promise("docs-023")
def test_without_what_makes_pdf_and_word_files_only_their_tests_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "without_makers.py").write_text(BLOCKS, encoding="utf-8")
    names = ("test_pdf.py", "test_word.py", "test_loading.py")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "without_makers", "-p", "no:cacheprovider"),
            *(str(Path(__file__).with_name(name)) for name in names),
        ],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    left_out = [line for line in run.stdout.splitlines() if line.startswith("SKIPPED")]
    assert [line.split("tests/rag/")[1].split(":")[0] for line in left_out] == ["test_pdf.py", "test_word.py"]
    assert "2 skipped" in run.stdout
