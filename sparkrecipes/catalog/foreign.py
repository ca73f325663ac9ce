"""Keys that other recipe formats have, and what stands for them here.

Source: the recipe files of sparkrun (https://github.com/spark-arena/sparkrun), eugr's
spark-vllm-docker (https://github.com/eugr/spark-vllm-docker) and vLLM
(https://github.com/vllm-project/recipes).
"""

_NOT_ONE = "unsupported_topology"
_ONE_SPARK = "remove it: a recipe is for one Spark, which has one GPU; for more see sparkrun"
_PATCHED = "remove it: an image that is patched when it starts is not the one that was measured"

FOREIGN_KEYS: dict[str, tuple[str, str]] = {
    "recipe_version": ("unknown_key", "remove it: these recipes have no version key"),
    "version": ("unknown_key", "remove it: these recipes have no version key"),
    "name": ("unknown_key", "write title: for people; the file's name is the id"),
    "description": ("unknown_key", "write title:, one line"),
    "runtime": ("unknown_key", "write engine:, a file of catalog/engines/"),
    "kind": ("unknown_key", "write engine:, a file of catalog/engines/"),
    "container": ("unknown_key", "write image: {reference: ..., digest: ...}"),
    "command": ("unknown_key", "write flags: as a list; model, port and context are fields"),
    "base_args": ("unknown_key", "write flags: as a list"),
    "args": ("unknown_key", "write flags: as a list"),
    "defaults": ("unknown_key", "write serving: and flags:"),
    "serve": ("unknown_key", "write serving: and flags:"),
    "max_model_len": ("unknown_key", "write serving: {context_tokens: ...}"),
    "max_num_seqs": ("unknown_key", "write serving: {users: ...}"),
    "port": ("unknown_key", "remove it: the port is chosen at launch, with --port"),
    "min_nodes": (_NOT_ONE, _ONE_SPARK),
    "max_nodes": (_NOT_ONE, _ONE_SPARK),
    "cluster_only": (_NOT_ONE, _ONE_SPARK),
    "tensor_parallel": (_NOT_ONE, _ONE_SPARK),
    "pipeline_parallel": (_NOT_ONE, _ONE_SPARK),
    "mods": ("not_reproducible", _PATCHED),
    "build_args": ("not_reproducible", _PATCHED),
    "pre_exec": ("not_reproducible", _PATCHED),
    "post_exec": ("not_reproducible", _PATCHED),
}
"""By key: the code of the problem, and what to do."""
