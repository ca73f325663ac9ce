"""Models, engines, recipes and rows for tests of the memory model, read from the catalog's files.

The catalog's loader is not used: a fault of it must not hide one of the memory model.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sparkrecipes.schema.engine import Engine
from sparkrecipes.schema.evidence import Evidence, EvidenceRow
from sparkrecipes.schema.machine import Gpu, Machine
from sparkrecipes.schema.model import Build, LayerGroup, Model
from sparkrecipes.schema.recipe import Recipe

CATALOG = Path(__file__).parents[2] / "catalog"
GIB = 2**30

SPARK = Machine(
    id="dgx-spark",
    title="NVIDIA DGX Spark",
    platform="linux/arm64",
    gpu=Gpu(name="NVIDIA GB10", compute_capability="12.1", docker_gpus="all"),
    mem_total_bytes=127_600_748 * 1024,
    host_reserve_bytes=5 * GIB,
    unified_memory=True,
    memory_bandwidth_gb_s=273.0,
    sources=("MemTotal of a DGX Spark",),
)


def stored(kind: str, name: str) -> dict[str, Any]:
    """Read one catalog file, with its id."""
    data = yaml.safe_load((CATALOG / kind / f"{name}.yaml").read_text())
    return {**data, "id": name}


@cache
def model(name: str) -> Model:
    """Read a model of the catalog."""
    return Model.model_validate_json(json.dumps(stored("models", name)))


@cache
def engine(name: str) -> Engine:
    """Read an engine of the catalog."""
    return Engine.model_validate_json(json.dumps(stored("engines", name)))


@cache
def recipe(name: str) -> Recipe:
    """Read a recipe of the catalog."""
    return Recipe.model_validate_json(json.dumps(stored("recipes", name)))


def recipe_ids() -> list[str]:
    """List the recipes of the catalog."""
    return sorted(p.stem for p in (CATALOG / "recipes").glob("*.yaml"))


def measured_ids() -> list[str]:
    """List the recipes that the October round measured."""
    return [name for name in recipe_ids() if row(name)]


@cache
def row(name: str) -> EvidenceRow | None:
    """Find the October row that measured a recipe."""
    for reference in recipe(name).evidence:
        file, _, wanted = reference.partition("#")
        data = Evidence.model_validate_json(json.dumps(stored("evidence", file)))
        if data.method == "october":
            return next(r for r in data.rows if r.id == wanted)
    return None


def made_of(layers: list[LayerGroup], *, hidden: int | None = 4096, **facts: Any) -> Model:
    """Make a model that no catalog holds, from its layers; two builds of 16 bits unless said."""
    given = {
        "params_total_b": 8.0,
        "params_active_b": 8.0,
        "context_tokens": 131072,
        "vocab_size": 128256,
        "mtp_layers": 0,
        "builds": (Build(repo="owner/made-up", quant="bf16"),),
        **facts,
    }
    sourced = (*given, "hidden_size", "layers", "modalities")
    return Model(
        id="made-up",
        title="Made up",
        family="made-up",
        hidden_size=hidden,
        layers=tuple(layers),
        modalities=(),
        licence=None,
        sources=dict.fromkeys(sourced, "a test"),
        **given,
    )
