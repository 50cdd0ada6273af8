"""`python -m dialoom.apps.geo FOLDER` does the gridding job that stands in a folder."""

import sys
from pathlib import Path

from dialoom.apps.geo.worker import main

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
