"""What every tool stands on: the server's settings, and the catalog, kept open."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mcp.server.mcpserver import Context

from sparkrecipes import operations
from sparkrecipes.catalog_files import catalog_root, catalog_state

if TYPE_CHECKING:
    from sparkrecipes.catalog import Catalog
    from sparkrecipes.schema.listing import RecipeSummary

T = TypeVar("T")

LOOK_EVERY_S = 1.0
"""The catalog's files are looked at this often: one that changed is read again."""
KEEP_S = 5.0
"""Answers that hang on the free memory are kept this long."""
MOST_KEPT = 200


@dataclass(frozen=True)
class Settings:
    """How a server was started.

    Attributes:
        catalog: Folder of another catalog; None: the shipped one.
        machine: Another target machine.
        offline: Whether no network may be asked.
        read_only: Whether what acts is left out.
        consent: ``ask`` asks the person through the client where that can; ``host`` leaves it to
            the client's own approval.
    """

    catalog: str | None = None
    machine: str | None = None
    offline: bool = False
    read_only: bool = False
    consent: Literal["ask", "host"] = "ask"


@dataclass
class House:
    """A running server's state; nothing in it outlives the process or needs to.

    Attributes:
        settings: How it was started.
    """

    settings: Settings
    opened: Catalog | None = None
    state: bytes = b""
    looked_at: float = 0.0
    kept: dict[Any, tuple[float, Any]] = field(default_factory=dict)

    def catalog(self) -> Catalog:
        """Return the open catalog, opened anew where one of its files has changed."""
        now = time.monotonic()
        if self.opened is None or now - self.looked_at > LOOK_EVERY_S:
            # Loaded by the first question: a server that is only asked for its tools starts quick.
            from sparkrecipes.catalog import open_catalog

            given = self.settings.catalog
            root = catalog_root(Path(given) if given else None)
            state = catalog_state(root)
            if self.opened is None or state != self.state:
                self.opened, self.state = open_catalog(root), state
                self.kept = {}
            self.looked_at = now
        return self.opened

    def target(self) -> dict[str, Any]:
        """Return what operations need to know of the catalog and the machine."""
        return {"catalog": self.catalog(), "machine": self.settings.machine}

    def summaries(self) -> tuple[RecipeSummary, ...]:
        """Return the list of recipes."""
        return self.keep(
            "list",
            lambda: operations.list_recipes(everything=True, catalog=self.catalog()).recipes,
            seconds=None,
        )

    def keep(self, key: Any, make: Callable[[], T], *, seconds: float | None = KEEP_S) -> T:
        """Return an answer that was made a moment ago, or make it.

        Args:
            key: What was asked.
            make: Makes the answer.
            seconds: How long it holds, at most until the catalog changes; None: until then.
        """
        # What was kept of a catalog that has changed goes before it is looked at.
        self.catalog()
        now = time.monotonic()
        found = self.kept.get(key)
        if found is not None and now < found[0]:
            answer: T = found[1]
            return answer
        made = make()
        if len(self.kept) >= MOST_KEPT:
            self.kept = {}
        self.kept[key] = (now + (1e9 if seconds is None else seconds), made)
        return made


def house_of(ctx: Context[Any, Any]) -> House:
    """Return the house of the server that a request came to."""
    found = ctx.request_context.lifespan_context
    if not isinstance(found, House):
        raise TypeError("a tool was called outside a server")
    return found
