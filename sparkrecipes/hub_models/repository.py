"""A model described by its repository: ``config.json`` and file sizes, read from the Hub.

Only facts that the repository states are used; what it does not state stays null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkrecipes.errors import Misuse, Unknown
from sparkrecipes.hub_models.layers import NotUnderstood, layer_groups
from sparkrecipes.schema.model import Build, ByteRange, Model

REPO = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$")
CONFIG_LIMIT_BYTES = 4 * 2**20


def fetch(repo: str) -> Model:
    """Ask the Hub what a repository holds.

    Raises:
        Misuse: ``repo`` is no repository name.
        Unknown: The Hub did not answer, does not show the repository, or its configuration is
            not understood.
    """
    from httpx2 import HTTPError
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if not REPO.match(repo):
        raise Misuse(f"{repo!r} is not a Hugging Face repository", repair="write it as owner/name")
    try:
        info = HfApi().model_info(repo, files_metadata=True, timeout=20)
        config = Path(hf_hub_download(repo, "config.json", revision=info.sha, etag_timeout=20))
    except GatedRepoError as err:
        raise Unknown(
            f"{repo} is gated: its licence must be accepted and a token given",
            code="gated",
            repair=f"accept it at https://huggingface.co/{repo}, then run: hf auth login",
        ) from err
    except RepositoryNotFoundError as err:
        raise Unknown(
            f"the Hub shows no repository {repo}: it is misspelt, private, or gone",
            code="repo_not_found",
            repair="check the name; for a private one run: hf auth login",
        ) from err
    except (HTTPError, OSError) as err:
        raise Unknown(
            f"the Hub could not be asked about {repo} ({type(err).__name__})",
            code="no_network",
            repair="check the network, or ask for a model of the catalog: sparkrecipes list",
        ) from err
    sizes = [f.size for f in info.siblings or [] if f.size and is_weights(f.rfilename)]
    return model_from_config(
        repo,
        read_config(repo, config),
        weights_bytes=sum(sizes) or None,
        params_total=info.safetensors.total if info.safetensors else None,
        source=f"https://huggingface.co/{repo}/blob/{info.sha}/config.json",
    )


def read_config(repo: str, path: Path) -> dict[str, Any]:
    """Read a configuration that somebody else wrote.

    Raises:
        Unknown: It is too large, no JSON, or no object.
    """
    try:
        if path.stat().st_size > CONFIG_LIMIT_BYTES:
            raise ValueError("over 4 MiB")
        config = json.loads(path.read_text())
        if not isinstance(config, dict):
            raise TypeError("no object")
    except (ValueError, TypeError, RecursionError) as err:
        raise Unknown(
            f"config.json of {repo} cannot be read ({err})",
            code="bad_config",
            repair=f"look at https://huggingface.co/{repo}/blob/main/config.json",
        ) from err
    return config


def is_weights(name: str) -> bool:
    """Say whether an engine loads a file: safetensors at the top, not a second copy of them."""
    return name.endswith(".safetensors") and "/" not in name and not name.startswith("consolidated")


def model_from_config(
    repo: str,
    config: Mapping[str, Any],
    *,
    weights_bytes: int | None,
    params_total: int | None,
    source: str,
) -> Model:
    """Describe a model by its Hugging Face configuration.

    Args:
        repo: The repository, ``owner/name``.
        config: ``config.json``; a nested ``text_config`` is the language model's.
        weights_bytes: Sum of its safetensors files.
        params_total: Number of parameters, where the Hub states it.
        source: Where the configuration was read.

    Raises:
        Unknown: The configuration does not say what is needed.
    """
    text = {**config, **config.get("text_config", {})}
    try:
        layers = layer_groups(text)
        context_tokens = int(text["max_position_embeddings"])
    except (NotUnderstood, KeyError, TypeError, ValueError) as err:
        raise Unknown(
            f"config.json of {repo} is of a kind that is not understood ({err})",
            code="unknown_architecture",
            repair="write a model file for it: docs/catalog.md",
        ) from err
    if not weights_bytes:
        raise Unknown(
            f"{repo} has no safetensors weights whose size the Hub states: it cannot be sized",
            code="no_weights",
            repair="ask for a repository with safetensors weights",
        )
    weights = ByteRange(
        low_bytes=weights_bytes, high_bytes=weights_bytes, what="on_disk", source=source
    )
    facts = ["context_tokens", "layers", "mtp_layers", "modalities"]
    facts += [name for name in ("hidden_size", "vocab_size") if text.get(name)]
    facts += ["params_total_b"] if params_total else []
    return Model(
        id=re.sub(r"[^a-z0-9._-]", "-", repo.lower().split("/")[1]),
        title=repo,
        family=str(config.get("model_type", "unknown")),
        params_total_b=params_total / 1e9 if params_total else None,
        params_active_b=None,
        context_tokens=context_tokens,
        hidden_size=text.get("hidden_size"),
        vocab_size=text.get("vocab_size"),
        layers=tuple(layers),
        mtp_layers=int(
            text.get("mtp_num_hidden_layers") or text.get("num_nextn_predict_layers") or 0
        ),
        modalities=("image",) if "vision_config" in config else (),
        licence=None,
        builds=(Build(repo=repo, quant=quant_of(config), weights=weights),),
        sources=dict.fromkeys(facts, source),
    )


def quant_of(config: Mapping[str, Any]) -> str:
    """Name the quantisation that a configuration states, or its plain type."""
    stated = config.get("quantization_config") or {}
    method = stated.get("quant_algo") or stated.get("quant_method")
    return str(method or config.get("torch_dtype") or config.get("dtype") or "unknown").lower()
