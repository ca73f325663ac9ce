"""Planted secrets, and a look at every place where one could have leaked to."""

import json
import os
import shutil
from pathlib import Path

HF_TOKEN = "hf_PlantedSecretPlantedSecret0123456"
NGC_API_KEY = "nvapi-PlantedSecretPlantedSecret01234567890"
VLLM_API_KEY = "sk-PlantedSecretPlantedSecret0123456"
REGISTRY_PASSWORD = "planted-registry-password-0123456"
SECRETS = (HF_TOKEN, NGC_API_KEY, VLLM_API_KEY, REGISTRY_PASSWORD)

WRAPPER = """#!/bin/sh
for word; do printf '%s\\0' "$word" >> {log}; done
exec {program} "$@"
"""


def plant(folder: Path, env: dict[str, str], *programs: str) -> None:
    """Put every secret into an environment, and note the arguments of programs that it starts.

    Args:
        folder: Where the notes go, and wrappers that come first on PATH.
        env: Changed in place.
        programs: Names of programs that are there; those that are not are left out.
    """
    wrappers = folder / "wrappers"
    wrappers.mkdir()
    for name in programs:
        found = shutil.which(name, path=env["PATH"])
        if found:
            wrapper = wrappers / name
            wrapper.write_text(WRAPPER.format(log=folder / "argv", program=found))
            wrapper.chmod(0o755)
    env |= {
        "PATH": f"{wrappers}{os.pathsep}{env['PATH']}",
        "HF_TOKEN": HF_TOKEN,
        "NGC_API_KEY": NGC_API_KEY,
        "VLLM_API_KEY": VLLM_API_KEY,
    }


def leaks(folder: Path, *texts: str) -> list[str]:
    """Name each place that holds a secret: what was printed, arguments, and all that was written.

    Args:
        folder: Of ``plant``; its ``state``, ``data`` and ``cache`` are searched too.
        texts: What was printed.
    """
    found = [f"printed: {text[:200]}" for text in texts if holds_secret(text.encode())]
    files = [folder / "argv"]
    for name in ("state", "data", "cache"):
        files += [path for path in (folder / name).rglob("*") if path.is_file()]
    found += [str(path) for path in files if path.is_file() and holds_secret(path.read_bytes())]
    return found


def holds_secret(data: bytes) -> bool:
    """Say whether one of the secrets is in there, as it is or as JSON writes it."""
    return any(json.dumps(secret)[1:-1].encode() in data for secret in SECRETS)
