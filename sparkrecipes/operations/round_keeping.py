"""Keeping a round: its file after every request, a line of the journal as it begins and ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkrecipes.machine import GpuClock
from sparkrecipes.operations.results import require_folder, round_path, save_round
from sparkrecipes.operations.round_journal import note_round
from sparkrecipes.operations.workspace import Workspace


@dataclass
class RoundKeeper:
    """Saves a round as it comes, with what is known of the machine beside it.

    Attributes:
        path: The round's own file.
        space: The target, and whether this host is it.
        gpu: What samples the GPU meanwhile.
        say: Told where the journal cannot be written.
        begun: Whether the journal holds the round's beginning.
    """

    path: Path
    space: Workspace
    gpu: GpuClock
    say: Callable[[str], None]
    begun: bool = False

    @classmethod
    def of(
        cls, subject: str, space: Workspace, gpu: GpuClock, say: Callable[[str], None] | None
    ) -> RoundKeeper:
        """Name the file of a round that begins now.

        Raises:
            Misuse: Rounds cannot be kept in the user's data folder.
        """
        path = round_path(datetime.now(UTC).isoformat(timespec="seconds"), subject)
        require_folder(path)
        return cls(path, space, gpu, say or (lambda _: None))

    def save(self, data: Mapping[str, Any]) -> None:
        """Save the round as it stands; the journal knows of it from its first request on."""
        save_round(self.path, self.whole(data))
        if not self.begun:
            self.begun = True
            if trouble := note_round(self.path):
                self.say(f"warning: {trouble}")

    def end(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Save the round and note its end; return it whole."""
        ended = self.whole(data)
        save_round(self.path, ended)
        note_round(self.path, ended)
        return ended

    def whole(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Add the machine that was measured on, where this host is it, and its GPU's clock."""
        added: dict[str, Any] = {"gpu": self.gpu.figures()}
        machine = self.space.machine
        if self.space.here:
            added["machine"] = {"id": machine.id, "mem_total_bytes": machine.mem_total_bytes}
        if fallen := self.gpu.degraded():
            added["warnings"] = [*data["warnings"], f"host_degraded: {fallen}"]
        return {**data, **added}
