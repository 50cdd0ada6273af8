"""Behind nginx as it comes, and behind two with one line more, events still come one by one."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from dialoom.server import Parts
from tests.server.conftest import TOKEN
from tests.server.live import BOUND, Events, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="NOTICE: nginx is not installed"),
]
NESTED = "proxy_pass_header X-Accel-Buffering;"
"""What docs/server.md tells those who put a proxy before a proxy."""
CONFIG = """
daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}
http {{
  access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
  fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen 127.0.0.1:{outer}; location / {{ proxy_pass http://127.0.0.1:{inner}; }} }}
  server {{ listen 127.0.0.1:{inner}; location / {{ {line} proxy_pass {behind}; }} }}
}}
"""


@contextmanager
def nginx(folder: Path, behind: str) -> Iterator[tuple[str, str]]:
    """Run two servers, one behind the other, in front of `behind`; give both addresses, the outer first."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        outer, inner = one.getsockname()[1], other.getsockname()[1]
        config = folder / "nginx.conf"
        config.write_text(
            CONFIG.format(folder=folder, outer=outer, inner=inner, behind=behind, line=NESTED),
            encoding="utf-8",
        )
        sockets = (one.fileno(), other.fileno())  # given as to a new nginx by an old one: nobody takes a port
        with subprocess.Popen(
            ["nginx", "-c", config, "-p", folder],
            stderr=subprocess.DEVNULL,
            pass_fds=sockets,
            env=os.environ | {"NGINX": "".join(f"{number};" for number in sockets)},
        ) as child:
            yield f"http://127.0.0.1:{outer}", f"http://127.0.0.1:{inner}"
            child.terminate()


@pytest.mark.parametrize("layers", [1, 2])
async def test_an_event_passes_the_proxies_before_the_next_one_happens(
    parts: Parts, tmp_path: Path, layers: int
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with served(parts, tmp_path / "data") as live:
        known = await live.begin()
        with nginx(tmp_path, live.url) as (outer, inner):
            address = inner if layers == 1 else outer
            async with (
                httpx2.AsyncClient(base_url=address, headers=headers, timeout=BOUND) as client,
                client.stream("GET", f"/api/v1/conversations/{known}/events") as response,
            ):
                events = Events(response)
                for title in ("one", "two", "three"):
                    await live.client.patch(f"/api/v1/conversations/{known}", json={"title": title})
                    heard = await events.until("conversation.updated")
                    assert heard[-1]["value"]["title"] == title
