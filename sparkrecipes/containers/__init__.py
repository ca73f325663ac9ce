"""Containers: start, watch and stop what carries our label, and touch nothing else.

Docker holds the state: a container's name and label say which recipe it serves, so that any
program can pick a server up. All of it goes through the ``docker`` command line, whose context,
credentials and ``DOCKER_HOST`` are the user's own.
"""

from sparkrecipes.containers.launching import launch
from sparkrecipes.containers.local_images import (
    LocalImage,
    keep_name,
    local_image,
    local_image_platform,
)
from sparkrecipes.containers.location import elsewhere
from sparkrecipes.containers.pulling import pull_image
from sparkrecipes.containers.readiness import wait_for_endpoint, wait_until_ready
from sparkrecipes.containers.servers import (
    find_server,
    foreign_holder,
    last_words,
    list_servers,
    logs,
    publisher_of,
    remove,
    restart_token,
    stop,
)

__all__ = [
    "LocalImage",
    "elsewhere",
    "find_server",
    "foreign_holder",
    "keep_name",
    "last_words",
    "launch",
    "list_servers",
    "local_image",
    "local_image_platform",
    "logs",
    "publisher_of",
    "pull_image",
    "remove",
    "restart_token",
    "stop",
    "wait_for_endpoint",
    "wait_until_ready",
]
