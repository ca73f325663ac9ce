"""The machine we are on, as it is now: what it is, and who uses its memory."""

from sparkrecipes.machine.docker import read_docker
from sparkrecipes.machine.gpu_clock import GpuClock
from sparkrecipes.machine.host import (
    disk_space,
    has_spark_gpu,
    host_is_spark,
    host_platform,
    live_memory,
    parse_gpus,
    read_host,
    weights_folder,
)
from sparkrecipes.machine.ports import listener_of
from sparkrecipes.machine.rootless import rootless_socket
from sparkrecipes.machine.usage import live_use

__all__ = [
    "GpuClock",
    "disk_space",
    "has_spark_gpu",
    "host_is_spark",
    "host_platform",
    "listener_of",
    "live_memory",
    "live_use",
    "parse_gpus",
    "read_docker",
    "read_host",
    "rootless_socket",
    "weights_folder",
]
