"""Start-up: the lines that an engine logs while it loads, in a fraction of the time."""

from __future__ import annotations

from sparkrecipes.schema.evidence import EvidenceRow
from sparkrecipes.schema.recipe import Recipe

SHARDS = 4

WEIGHTS_FROM, WEIGHTS_TO = 0.1, 0.7
"""Parts of the start in which the weights are read."""


def startup_log(recipe: Recipe, row: EvidenceRow, load_s: float) -> list[tuple[float, str]]:
    """Return (seconds after the start, line) of a start, shaped as vLLM logs its milestones.

    Sizes are left out: what the weights and the KV cache took was not published.

    Args:
        recipe: What is started.
        row: Whose published load time is named.
        load_s: How long the start is made to take.

    Source: start-up logs of vLLM 0.17 to 0.32.
    """
    took = f"{row.figures.load_min} min" if row.figures.load_min else "no published time"
    weights = recipe.weights.repo if recipe.weights else recipe.served_model_name
    lines = [
        (0.0, f"INFO [rehearsal] simulated start: {took} played in {load_s:g} s, no weights"),
        (0.0, f"INFO [gpu_model_runner.py] Starting to load model {weights}..."),
    ]
    if recipe.drafter:
        lines.append((WEIGHTS_TO, "INFO [gpu_model_runner.py] Loading drafter model..."))
    for shard in range(1, SHARDS + 1):
        at = WEIGHTS_FROM + (WEIGHTS_TO - WEIGHTS_FROM) * shard / SHARDS
        done = f"{100 * shard // SHARDS:3d}% Completed | {shard}/{SHARDS}"
        lines.append((at, f"Loading safetensors checkpoint shards: {done}"))
    lines += [
        (0.72, f"INFO [backends.py] Dynamo bytecode transform time: {0.02 * load_s:.2f} s"),
        (0.8, f"INFO [monitor.py] torch.compile took {0.1 * load_s:.2f} s in total"),
        (0.82, "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   0%|"),
        (0.95, f"INFO [gpu_model_runner.py] Graph capturing finished in {0.15 * load_s:.2f} secs"),
        (1.0, "INFO:     Application startup complete."),
    ]
    return [(at * load_s, line) for at, line in sorted(lines, key=lambda timed: timed[0])]
