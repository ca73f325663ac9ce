"""The command of every shipped recipe as text, one argument a line.

``python -m tests.support.golden_commands`` writes the files anew after a change that is meant.
"""

from __future__ import annotations

from pathlib import Path

from sparkrecipes.catalog import Catalog, open_catalog
from sparkrecipes.commands import MountedWeights, render
from sparkrecipes.memory import added_compile_jobs, recipe_request
from sparkrecipes.schema.recipe import Recipe, WeightsSource

FOLDER = Path(__file__).parent.parent / "data" / "commands"
ROOT = Path("/home/spark/.cache/huggingface/hub")
CACHED = "0" * 40
"""The commit that stands for the cached one where a recipe pins none."""


def golden(catalog: Catalog, recipe: Recipe) -> str:
    """Render a recipe as shipped on a Spark, its weights cached, its image by tag."""
    engine, machine = catalog.engine(recipe.engine), catalog.machines["dgx-spark"]
    request = recipe_request(recipe, catalog.model(recipe.model), engine, None)
    command = render(
        recipe,
        engine,
        machine,
        weights=cached(recipe.weights),
        drafter=cached(recipe.drafter),
        cache_root=ROOT,
        context_tokens=recipe.serving.context_tokens,
        users=recipe.serving.users,
        gpu_memory_utilization=recipe.serving.gpu_memory_utilization,
        set_env=("NGC_API_KEY",),
        catalog_version="VERSION",
        compile_jobs=added_compile_jobs(request, machine),
    )
    lines = (*command.argv, *(f"# {warning}" for warning in command.warnings))
    return "".join(f"{line}\n" for line in lines)


def cached(source: WeightsSource | None) -> MountedWeights | None:
    """Describe a repository as one that lies in the cache."""
    if source is None:
        return None
    folder = ROOT / f"models--{source.repo.replace('/', '--')}"
    return MountedWeights(folder, source.revision or CACHED)


def main() -> None:
    """Write the text of every shipped recipe; texts of recipes that are gone go too."""
    catalog = open_catalog()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for stale in FOLDER.glob("*.txt"):
        stale.unlink()
    for recipe in catalog.recipes.values():
        (FOLDER / f"{recipe.id}.txt").write_text(golden(catalog, recipe))


if __name__ == "__main__":
    main()
