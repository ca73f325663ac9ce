"""A container as a Compose file.

Source: https://github.com/compose-spec/compose-spec/blob/main/spec.md
"""

from __future__ import annotations

from typing import Any

from sparkrecipes.commands.container import LOG_OPTIONS, Container


def compose_text(container: Container) -> str:
    """Write a Compose file with one service, named like the container.

    Variables passed by name take their value from the shell that runs ``docker compose``.
    """
    import yaml

    names = [volume.name for volume in container.volumes]
    document = {
        "services": {container.name: literal(service(container))},
        **({"volumes": {name: {"name": name} for name in names}} if names else {}),
    }
    text: str = yaml.safe_dump(document, sort_keys=False, width=2**20, allow_unicode=True)
    return text


def service(container: Container) -> dict[str, Any]:
    """Describe the service; what does not apply is left out."""
    binds = [
        {
            "type": "bind",
            "source": bind.source,
            "target": bind.target,
            "read_only": True,
            "bind": {"create_host_path": False},
        }
        for bind in container.mounts
    ]
    volumes = [{"type": "volume", "source": v.name, "target": v.target} for v in container.volumes]
    env = [f"{name}={value}" for name, value in sorted(container.env.items())]
    fields = {
        "container_name": container.name,
        "image": container.image,
        "pull_policy": "never" if container.local_image else None,
        "platform": container.platform,
        "command": list(container.arguments),
        "labels": dict(sorted(container.labels.items())),
        "environment": [*env, *container.secrets],
        "ports": [container.published],
        "shm_size": container.shm_size,
        "volumes": [*binds, *volumes],
        "deploy": {"resources": {"reservations": {"devices": [device(container.gpus)]}}}
        if container.gpus
        else None,
        "restart": "no",
        "logging": {"driver": "json-file", "options": dict(LOG_OPTIONS)},
    }
    return {key: value for key, value in fields.items() if value not in (None, [])}


def device(gpus: str) -> dict[str, Any]:
    """Say which GPUs are reserved, from what ``docker run --gpus`` would be given."""
    chosen: dict[str, Any] = {"count": int(gpus) if gpus.isdigit() else "all"}
    if gpus.startswith("device="):
        chosen = {"device_ids": gpus.removeprefix("device=").split(",")}
    return {"driver": "nvidia", **chosen, "capabilities": ["gpu"]}


def literal(value: Any) -> Any:
    """Double every dollar sign, which Compose would read as a variable."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, list):
        return [literal(item) for item in value]
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    return value
