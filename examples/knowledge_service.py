"""A front end in front of `dialoom rag`: lines of JSON to its stdin, lines of JSON from its stdout.

Run it: `python examples/knowledge_service.py "QUESTION" [FOLDER]`. It starts the service, offline, over
the documents beside it.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

DOCUMENTS = Path(__file__).parent / "kb"


def main(question: str, documents: str | Path = DOCUMENTS) -> int:
    words = ["-m", "dialoom", "rag", "--offline", "--docs", str(documents)]
    asked: list[dict[str, object]] = [
        {"id": 1, "op": "health"},
        {"id": 2, "op": "query", "query": question},
        {"id": 3, "op": "shutdown"},
    ]
    lines = "".join(json.dumps(each) + "\n" for each in asked)
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, *words],
        input=lines,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
    )
    answers: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    final = next((answer for answer in answers if answer.get("event") == "final"), None)
    if final is None:
        return 1
    print(final["answer"])
    for source in final["cited_sources"]:
        print(f"[{source['index']}] {source['title']}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:3] or ["What fee is kept on return?"])))
