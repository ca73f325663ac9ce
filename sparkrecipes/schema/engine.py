"""An engine: how a recipe's settings reach it, and how it shows its state."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sparkrecipes.schema.base import Frozen, Id, Text
from sparkrecipes.schema.recipe import EnvName


class FlagNames(Frozen):
    """The engine's own names for the settings that a recipe states as fields."""

    context_tokens: Text
    users: Text
    kv_cache_dtype: Text
    gpu_memory_utilization: Text
    served_model_name: Text
    speculative: Text | None
    """Option that takes speculation as JSON; null where flags of the recipe switch it on."""


class MetricNames(Frozen):
    """Counters of the engine's ``/metrics`` page."""

    drafts: Text | None = None
    draft_tokens: Text | None = None
    accepted_tokens: Text | None = None
    accepted_per_position: Text | None = None
    generation_tokens: Text | None = None


class Milestone(Frozen):
    """A log line that shows how far a start has come."""

    pattern: Text
    """Regular expression, searched in each line."""
    says: Text
    """What it means, in a few words."""


class EngineFile(Frozen):
    """One file of ``catalog/engines/``; its name is the engine's id."""

    title: Text
    arguments: Literal["command", "env"]
    """Whether engine arguments follow the image name or are joined into one variable."""
    arguments_env: EnvName | None = None
    """That variable, where ``arguments`` is env."""
    model_argument: bool
    """Whether the model's folder is the first argument."""
    command: tuple[Text, ...] = ()
    """Words before all arguments, where the image does not start the server by itself."""
    model_flag: Text | None = None
    """Option that takes the model's folder; null where it stands alone."""
    kv_cache_dtypes: dict[Text, Text] = {}
    """The engine's own words for types of the KV cache, where they differ from a recipe's."""
    flags: FlagNames
    container_port: Annotated[int, Field(ge=1, le=65535)]
    listen_flags: tuple[Text, ...]
    """Arguments that make it listen inside the container."""
    weights_mount: Text
    """Folder inside the container where the weights cache is mounted."""
    cache_volume: Text | None = None
    """Folder that the image fills itself (NIM); it becomes a named volume."""
    secrets: tuple[EnvName, ...] = ()
    """Variables it needs, passed by name only."""
    optional_secrets: tuple[EnvName, ...] = ()
    """Variables passed by name when they are set."""
    compile_jobs_env: EnvName | None = None
    """Variable that bounds how many kernels are compiled at once; null where it compiles none by
    other programs."""
    health_path: Text
    models_path: Text
    chat_path: Text
    metrics_path: Text | None
    metrics: MetricNames | None = None
    milestones: tuple[Milestone, ...] = ()
    default_gpu_memory_utilization: dict[Text, float] = {}
    """Default fraction from each release on, by version."""
    kv_rules: Literal["vllm"] | None = None
    """Whose cache arithmetic holds; null where none was checked."""
    sources: Annotated[tuple[Text, ...], Field(min_length=1)]


class Engine(EngineFile):
    """An engine with its id."""

    id: Id
