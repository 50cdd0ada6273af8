"""`python -m dialoom` is the `dialoom` command."""

import sys

from dialoom.cli import main

if __name__ == "__main__":
    sys.exit(main())
