"""What a real model server can do, asked of it.

Run it: `python examples/check_model.py http://127.0.0.1:11434/v1 llama3.2`. The command does the same for the
model of the settings: `dialoom doctor`.
"""

import asyncio
import sys

from dialoom.llm import diagnose


async def main(base_url: str, model: str | None) -> int:
    report = await diagnose(base_url, model)
    print("\n".join(report.lines()))
    return 0 if report.ok else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("name the address of a server, like http://127.0.0.1:11434/v1, and a model of it")
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)))
