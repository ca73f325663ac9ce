"""A container as a systemd unit.

Source: systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers".
"""

from __future__ import annotations

import re

from sparkrecipes.commands.container import Container
from sparkrecipes.commands.docker import docker_argv

PLAIN = re.compile(r"[A-Za-z0-9_./:,=@+-]+")
SECRETS_FILE = "/etc/sparkrecipes/secrets.env"
STOP_TIMEOUT_S = 60


def systemd_text(container: Container) -> str:
    """Write a unit that runs the container in the foreground, so that systemd sees it end.

    Restart=no for the same reason as in ``docker run``: a start that fails stays failed, and
    ``systemctl status`` shows it. Secrets come from a file that only root may read.
    """
    program, *arguments = docker_argv(container, detached=False)
    secrets = (f"EnvironmentFile={SECRETS_FILE}",) if container.secrets else ()
    lines = (
        "[Unit]",
        f"Description={specifiers(container.title)}",
        "Requires=docker.service",
        "After=docker.service network-online.target",
        "Wants=network-online.target",
        "",
        "[Service]",
        "Type=exec",
        *secrets,
        " ".join((f"ExecStart=/usr/bin/{program}", *map(quoted, arguments))),
        f"ExecStop=/usr/bin/{program} stop {container.name}",
        f"TimeoutStopSec={STOP_TIMEOUT_S}",
        "Restart=no",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    )
    return "\n".join(lines) + "\n"


def quoted(argument: str) -> str:
    """Quote one argument of a command line: quotes, backslashes, specifiers and variables."""
    if PLAIN.fullmatch(argument):
        return argument
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{specifiers(escaped)}"'


def specifiers(text: str) -> str:
    """Double every percent sign, which systemd would read as a specifier."""
    return text.replace("%", "%%")
