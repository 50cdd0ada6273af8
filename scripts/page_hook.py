"""The wheel brings the page with it: built here when it is not built yet and npm is there."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = Path("src/dialoom/server/page")
STEPS = (("ci", "--no-audit", "--no-fund"), ("run", "build"))
STEP_SECONDS = 900.0


class PageHook(BuildHookInterface[Any]):
    """Runs `npm ci` and `npm run build` in web/; where that fails it says so: the plain page is served."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the hook's signature
        root = Path(self.root)
        if version == "editable" or (root / BUILT / "index.html").exists() or not (root / "web").exists():
            return
        npm = shutil.which("npm")
        if npm is None:
            self.app.display_warning("npm is not here: the wheel serves the plain page only")
            return
        try:
            for step in STEPS:
                subprocess.run([npm, *step], cwd=root / "web", check=True, timeout=STEP_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:  # no network, or a Node that is too old
            shutil.rmtree(root / BUILT, ignore_errors=True)
            told = f"the page could not be built ({error}): the wheel serves the plain page only"
            self.app.display_warning(told)
