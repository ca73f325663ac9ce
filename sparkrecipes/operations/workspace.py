"""What every operation stands on: a catalog, a target machine, and whether to ask the network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sparkrecipes import machine as machines
from sparkrecipes.catalog import Catalog, open_catalog
from sparkrecipes.errors import Misuse
from sparkrecipes.schema.machine import Machine

Place = Path | str | None
"""A catalog folder or a machine file, or None for the default."""


@dataclass(frozen=True)
class Workspace:
    """A catalog, the machine that recipes are judged for, and how to ask.

    Attributes:
        catalog: Where recipes and facts come from.
        machine: The target; on a Spark its MemTotal is the one of this host.
        offline: Whether the network may not be asked.
        here: Whether this host is the target, so that what is free now counts.
    """

    catalog: Catalog
    machine: Machine
    offline: bool
    here: bool


def open_workspace(
    catalog: Catalog | Place = None,
    machine: Machine | Place = None,
    *,
    offline: bool = False,
) -> Workspace:
    """Open the catalog and choose the target machine.

    Args:
        catalog: An open catalog, its folder, or None for ``SPARKRECIPES_CATALOG`` or the shipped
            one.
        machine: A machine, its id or file, or None for ``SPARKRECIPES_MACHINE`` or the DGX Spark.
        offline: True asks no network.

    Raises:
        Misuse: A folder or file that is not there, or an unknown id.
        CatalogError: A file of the catalog that cannot be used.
    """
    opened = open_catalog_of(catalog)
    target = machine if isinstance(machine, Machine) else opened.machine(machine)
    here = is_this_host(target)
    live = machines.live_memory() if here and target.unified_memory else None
    if live is not None:
        target = target.model_copy(update={"mem_total_bytes": live[0]})
    return Workspace(opened, target, offline, here)


def open_catalog_of(catalog: Catalog | Place) -> Catalog:
    """Return an open catalog as it is, or open a folder or the default one."""
    if isinstance(catalog, Catalog):
        return catalog
    return open_catalog(None if catalog is None else Path(catalog))


def is_this_host(target: Machine) -> bool:
    """Say whether this host is the target: same platform, and a Spark where it has a GPU."""
    if machines.host_platform() != target.platform:
        return False
    return target.gpu is None or machines.host_is_spark()


def positive(name: str, value: int | None) -> int | None:
    """Return ``value`` where it is None or at least 1.

    Raises:
        Misuse: With the option's name.
    """
    if value is not None and value < 1:
        raise Misuse(f"{name} must be at least 1, not {value}", repair=f"give {name} as 1 or more")
    return value
