"""A program that answers as nvidia-smi does in a loop, for machines that have no GPU.

Copies the form of ``nvidia-smi --query-gpu=clocks.sm,utilization.gpu,power.draw,temperature.gpu
--format=csv,noheader,nounits --id=0 --loop=5``: a line a sample, without units, ``[N/A]`` for what
a GB10 does not tell. Clocks, utilisation and power of the degraded one are those of C119.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.programs import write_python

FIELDS = "clocks.sm,utilization.gpu,power.draw,temperature.gpu"
DEGRADED = ("2216, 96, 20.00, 61", "890, 96, 21.00, 62", "858, 96, 19.00, 61", "695, 96, 20.00, 60")
HEALTHY = ("208, 0, 4.32, 41", *["2405, 96, 41.20, 66", "2398, 95, 40.90, 67"] * 3)
SILENT = ("[N/A], [N/A], [N/A], [N/A]",)

PROGRAM = """
import sys, time
wanted = ["--query-gpu={fields}", "--format=csv,noheader,nounits", "--id=0"]
assert all(option in sys.argv for option in wanted), sys.argv
assert any(option.startswith("--loop=") for option in sys.argv)
for line in {lines!r}:
    print(line, flush=True)
time.sleep(60)
"""


def install(folder: Path, lines: tuple[str, ...]) -> str:
    """Write the program into a folder; return a PATH that begins with it."""
    write_python(folder / "nvidia-smi", PROGRAM.format(fields=FIELDS, lines=lines))
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
