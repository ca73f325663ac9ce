"""Measured LLM serving recipes for one NVIDIA DGX Spark: pick, check, install, prove.

>>> import sparkrecipes as sr
>>> sr.recommend("agents").pick.id
'qwen3.6-35b-a3b-nvfp4-vllm-mtp'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkrecipes.errors import SparkRecipesError
    from sparkrecipes.operations import (
        audit_published,
        check_image,
        check_recipe,
        compare,
        compare_rounds,
        connect,
        contribute_round,
        diagnose,
        diagnose_server,
        download,
        estimate_memory,
        export_rounds,
        get_evidence,
        get_recipe,
        import_recipe,
        install,
        launch,
        list_recipes,
        list_rounds,
        list_servers,
        pin_recipe,
        probe_machine,
        recommend,
        rehearse,
        render_command,
        review_changes,
        run_round,
        server_logs,
        stop,
        validate_recipe,
        wait_until_ready,
        write_report,
    )

__version__ = "0.1.0"

__all__ = [
    "SparkRecipesError",
    "__version__",
    "audit_published",
    "check_image",
    "check_recipe",
    "compare",
    "compare_rounds",
    "connect",
    "contribute_round",
    "diagnose",
    "diagnose_server",
    "download",
    "estimate_memory",
    "export_rounds",
    "get_evidence",
    "get_recipe",
    "import_recipe",
    "install",
    "launch",
    "list_recipes",
    "list_rounds",
    "list_servers",
    "pin_recipe",
    "probe_machine",
    "recommend",
    "rehearse",
    "render_command",
    "review_changes",
    "run_round",
    "server_logs",
    "stop",
    "validate_recipe",
    "wait_until_ready",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Load the operations when the first one is used: importing the package costs nothing."""
    if name == "SparkRecipesError":
        from sparkrecipes.errors import SparkRecipesError

        return SparkRecipesError
    if name in __all__:
        from sparkrecipes import operations

        return getattr(operations, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what can be used."""
    return sorted(__all__)
