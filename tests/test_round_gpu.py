"""The machine itself may be slow: its GPU's clock is read beside the round."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import operations as ops
from sparkrecipes.reports import compare
from sparkrecipes.schema.round import Round
from tests.support import fake_nvidia_smi as smi
from tests.support.replay_server import Engine, ReplayServer, Request, Script, answer
from tests.support.scripted_round import codes


def measured_round(**options: Any) -> tuple[dict[str, Any], ReplayServer]:
    """A round as the package runs it."""
    with ReplayServer(Engine(slow)) as server:
        done = ops.run_round(base_url=server.base_url, model="m", only="single", **options)
    return json.loads(done.model_dump_json()), server


def slow(_: Request) -> Script:
    """An answer that takes long enough for samples to come."""
    return answer(100, each=0.003)


def lines_of(path: str) -> list[str]:
    """Programs of that PATH's first folder that run now, by their command lines."""
    folder = path.split(os.pathsep)[0]
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return [line for line in found if folder in line]


def test_a_clock_that_falls_under_load_is_named_and_makes_the_round_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C119: 2216 to 695 MHz at 96 %: the machine was slow, and nothing is compared."""
    monkeypatch.setenv("PATH", path := smi.install(tmp_path, smi.DEGRADED))
    data, _ = measured_round()
    gpu = data["gpu"]
    assert (4, 4) == (gpu["samples"], gpu["under_load"])
    assert (695.0, 2216.0) == (gpu["sm_clock_mhz"]["min"], gpu["sm_clock_mhz"]["max"])
    assert (96.0, 20.0) == (gpu["utilization_pct"]["median"], gpu["power_w"]["median"])
    assert ["host_degraded"] == codes(data)
    assert "fell from 2216 to 695 MHz under load" in data["warnings"][0]
    report = compare(Round.model_validate_json(json.dumps(data)), None, recipe_id=None)
    assert "not_comparable" == report.verdict
    assert [] == lines_of(path), "the sampler must end with the round"


def test_a_healthy_clock_is_recorded_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle samples before the load are not a fall, nor part of the figures."""
    monkeypatch.setenv("PATH", smi.install(tmp_path, smi.HEALTHY))
    data, _ = measured_round()
    assert (7, 6) == (data["gpu"]["samples"], data["gpu"]["under_load"])
    assert 2398.0 == data["gpu"]["sm_clock_mhz"]["min"]
    assert [] == codes(data)


def test_two_busy_samples_are_too_few_to_call_a_machine_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the end of a load falls on every machine."""
    monkeypatch.setenv("PATH", smi.install(tmp_path, (smi.DEGRADED[0], smi.DEGRADED[-1])))
    data, _ = measured_round()
    assert (2, 695.0) == (data["gpu"]["under_load"], data["gpu"]["sm_clock_mhz"]["min"])
    assert [] == codes(data)


@pytest.mark.parametrize(
    "lines",
    [
        smi.SILENT,
        ("NVIDIA-SMI has failed",),
        ("1,2", ""),
        ("nan, inf, -1, 4294967295",),
    ],
)
def test_what_the_tool_does_not_tell_is_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]
) -> None:
    """N/A, a failure of the driver, another form, what no field can be: unknown, no warning."""
    monkeypatch.setenv("PATH", smi.install(tmp_path, lines))
    data, _ = measured_round()
    assert (None, []) == (data["gpu"], codes(data))


def test_without_the_tool_there_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without nvidia-smi is measured all the same."""
    monkeypatch.setenv("PATH", "/nonexistent")
    data, _ = measured_round()
    assert data["gpu"] is None
    assert data["single"]["n"] == 3


def test_a_rehearsal_samples_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server is a double: what the GPU does meanwhile says nothing of it."""
    monkeypatch.setenv("PATH", smi.install(tmp_path, smi.DEGRADED))
    data, _ = measured_round(simulated=True)
    assert (None, []) == (data["gpu"], codes(data))
