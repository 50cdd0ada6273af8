"""Clients of others for browsers and Node: the AG-UI client and the AI SDK, against our server."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.conftest import TOKEN

HERE = Path(__file__).parent
BOUND = 100.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or not (HERE / "node_modules/@ag-ui/client").is_dir(),
        reason="NOTICE: no foreign clients: make .venv/peers.stamp (npm)",
    ),
]


def test_the_agui_client_and_the_ai_sdk_talk_stream_and_call_tools(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.server.echo_server", str(tmp_path)]
    with subprocess.Popen(command, cwd=HERE.parents[1], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        base = server.stdout.readline().strip()
        done = subprocess.run(
            ["node", "web_clients.mjs"],
            cwd=HERE,
            env=os.environ | {"BASE": base, "TOKEN": TOKEN},
            check=False,
            capture_output=True,
            text=True,
            timeout=BOUND,
        )
        server.terminate()
        assert server.wait(BOUND) == 0
    assert (done.returncode, done.stderr) == (0, "")  # both warn of what their protocol does not know
    assert json.loads(done.stdout) == {
        "agui": {
            "messages": [
                ["user", "25 m 网格"],
                ["assistant", "You said: 25 m 网格 "],
                ["user", "again"],
                ["assistant", "You said: again "],
            ],
            "first": "RUN_STARTED",
            "last": "RUN_FINISHED",
        },
        "graph": [
            "RUN_STARTED",
            "STEP_STARTED",
            "STEP_FINISHED",
            "graph.superstep",
            "STATE_SNAPSHOT",
            "RUN_FINISHED",
        ],
        "aiSdk": {
            "whole": "You said: hello ",
            "stream": "You said: 25 m 网格 ",
            "count": 5,
            "calls": [["weather", {"city": "Oslo"}]],
            "after": "You said: rain in Oslo ",
        },
    }
