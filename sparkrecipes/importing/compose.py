"""Reading a service of a Compose file.

Source: https://github.com/compose-spec/compose-spec/blob/main/05-services.md
"""

from __future__ import annotations

import re
from typing import Any

from sparkrecipes.importing.docker_options import WHY
from sparkrecipes.importing.docker_run import (
    LOOPBACK,
    is_weights_cache,
    take_env,
    take_label,
)
from sparkrecipes.importing.foreign_yaml import ForeignYaml
from sparkrecipes.importing.found import Found, Word
from sparkrecipes.importing.serving import (
    engine_of_image,
    is_serving,
    split_or_refuse,
    take_commands,
    take_serving,
)
from sparkrecipes.strict_yaml import PathInTree

NOTHING_LOST = frozenset(
    [
        "container_name",
        "labels",
        "platform",
        "pull_policy",
        "logging",
        "stdin_open",
        "tty",
        "init",
        "hostname",
    ]
)
"""Keys that ``launch`` decides itself."""

WHY_NOT: dict[str, str] = {
    "ipc": WHY["--ipc"],
    "network_mode": WHY["--network"],
    "networks": "the server has Docker's bridge network",
    "privileged": WHY["--privileged"],
    "cap_add": WHY["--cap-add"],
    "security_opt": WHY["--security-opt"],
    "devices": WHY["--device"],
    "runtime": WHY["--runtime"],
    "restart": WHY["--restart"],
    "env_file": WHY["--env-file"],
    "entrypoint": WHY["--entrypoint"],
    "user": WHY["--user"],
    "working_dir": WHY["--workdir"],
    "ulimits": WHY["--ulimit"],
    "mem_limit": WHY["--memory"],
    "healthcheck": "readiness is a real completion, which the tool asks for itself",
    "depends_on": "a recipe is one container",
    "build": "an image that is built here is not the one that was measured",
    "extends": "another file's settings: print them whole with 'docker compose config'",
    "secrets": "a recipe holds no secret; set it where the tool runs",
    "profiles": "a recipe is one container",
}
_VARIABLE = re.compile(r"\$(\$|\{|[A-Za-z_])")


def read(found: Found, yaml: ForeignYaml, select: str | None) -> None:
    """Read the service that serves a model.

    Raises:
        CatalogError: There is none, or several and none was named.
    """
    name = service_name(found, yaml, select)
    path: PathInTree = ("services", name)
    yaml.drop_rest(found, (), ("services", "version", "name", "volumes"), {}, "not a service")
    for other in yaml.tree["services"]:
        if other != name:
            line = yaml.line(("services", other))
            found.drop(line, f"service {other}", "a recipe is one container")
    image = yaml.word((*path, "image"))
    found.image = interpolated(image) if image else None
    shared = yaml.word((*path, "shm_size"))
    found.shm_size = interpolated(shared) if shared else None
    take_command(found, yaml, path)
    take_environment(found, yaml, (*path, "environment"))
    take_labels(found, yaml.at((*path, "labels")))
    take_ports(found, yaml, (*path, "ports"))
    take_volumes(found, yaml, (*path, "volumes"))
    take_rest(found, yaml, path)


def service_name(found: Found, yaml: ForeignYaml, select: str | None) -> str:
    """Choose the service: the one named, else the only one whose image or command serves."""
    services: dict[str, Any] = yaml.at(("services",)) or {}
    names = [name for name, value in services.items() if isinstance(value, dict)]
    serving = [name for name in names if engine_of_image(str(services[name].get("image")))]
    chosen = serving or names
    if select is None and len(chosen) == 1:
        return str(chosen[0])
    if select is not None and select in names:
        return select
    line = yaml.line(("services",))
    listed = ", ".join(names) or "none"
    message = f"no service {select}" if select else f"{len(chosen)} services could be the one"
    repair = f"name one with --select: {listed}" if names else "give a file with a service"
    raise found.refusal(line, "which_service", message, repair)


def take_command(found: Found, yaml: ForeignYaml, path: PathInTree) -> None:
    """Take the arguments: a list, or a text that is split the way a shell would."""
    value = yaml.at((*path, "command"))
    if isinstance(value, list):
        words = [interpolated(item) for item in yaml.words((*path, "command"))]
        if is_serving(words):
            take_serving(found, words)
        else:
            found.arguments = words
        return
    word = yaml.word((*path, "command"))
    if word is None:
        return
    commands = split_or_refuse(found, word.text, yaml.text_line((*path, "command")))
    if any(is_serving(command.words) for command in commands):
        take_commands(found, commands)
        return
    found.arguments = [interpolated(each) for command in commands for each in command.words]


def interpolated(word: Word) -> Word:
    """Mark what Compose would take from its environment, and undo its doubled dollar signs."""
    open_ = any(sign[1] != "$" for sign in _VARIABLE.finditer(word.text))
    return Word(word.text.replace("$$", "$"), word.line, word.expands or open_)


def take_environment(found: Found, yaml: ForeignYaml, path: PathInTree) -> None:
    """Take the variables: ``NAME=value`` items, or a mapping."""
    if isinstance(yaml.at(path), list):
        for word in yaml.words(path):
            take_env(found, interpolated(word))
        return
    value = yaml.at(path)
    yaml.variables(found, path)
    for name in value if isinstance(value, dict) else ():
        given = yaml.word((*path, name))
        line = yaml.line((*path, name))
        item = interpolated(given) if given else None
        text = name if item is None else f"{name}={item.text}"
        take_env(found, Word(text, line, item.expands if item else False))


def take_labels(found: Found, labels: Any) -> None:
    """Take our own note among the labels: a mapping, or ``name=value`` items."""
    pairs = labels.items() if isinstance(labels, dict) else ()
    items = labels if isinstance(labels, list) else [f"{name}={value}" for name, value in pairs]
    for item in items:
        take_label(found, str(item))


def take_ports(found: Found, yaml: ForeignYaml, path: PathInTree) -> None:
    """Note ports that would be open to others."""
    value = yaml.at(path)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        here = (*path, index)
        host = item.get("host_ip", "") if isinstance(item, dict) else str(item)
        if not f"{host}:".startswith(LOOPBACK):
            text = item if not isinstance(item, dict) else item.get("published", "")
            found.drop(yaml.line(here), f"ports: {text}", WHY["--publish"])


def take_volumes(found: Found, yaml: ForeignYaml, path: PathInTree) -> None:
    """Note mounts that are no weights' cache."""
    value = yaml.at(path)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        text = f"{item.get('source')}:{item.get('target')}" if isinstance(item, dict) else item
        if not is_weights_cache(str(text)):
            line = yaml.line((*path, index))
            found.drop(line, f"volumes: {text}", WHY["--volume"])


def take_rest(found: Found, yaml: ForeignYaml, path: PathInTree) -> None:
    """Note the other keys; a GPU reservation and ``restart: no`` say what the tool does anyway."""
    silent = {"image", "command", "environment", "ports", "volumes", "shm_size", *NOTHING_LOST}
    if yaml.at((*path, "restart")) == "no":
        silent.add("restart")
    if only_a_gpu(yaml.at((*path, "deploy"))):
        silent.add("deploy")
    yaml.drop_rest(found, path, silent, WHY_NOT, "a recipe has no place for it")


def only_a_gpu(deploy: Any) -> bool:
    """Tell whether ``deploy`` does nothing but reserve a GPU."""
    match deploy:
        case {"resources": {"reservations": {"devices": list(), **more}, **others}, **rest}:
            return not (more or others or rest)
    return False
