"""What importing the models costs: the heavy packages wait for their first use."""

import subprocess
import sys

HEAVY = ("httpx2", "httpcore2", "anyio", "pydantic", "numpy", "jsonschema_rs")


def test_importing_the_models_loads_no_heavy_package() -> None:
    code = f"import sys, dialoom.llm; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"
