"""Who listens on a port of this host, as far as the kernel tells this user."""

from __future__ import annotations

import re
import shutil

from sparkrecipes.machine.reading import run

OWNER = re.compile(r'users:\(\("(?P<name>[^"]{1,64})",pid=(?P<pid>\d+)')
"""How ``ss -p`` names the process; only its owner and root are told."""


def listener_of(port: int) -> str | None:
    """Name the process that listens on a TCP port; null where nobody does or may be seen."""
    if shutil.which("ss") is None:
        return None
    ran = run(["ss", "-H", "-l", "-t", "-n", "-p", f"sport = :{port}"])
    found = OWNER.search(ran.out) if ran.code == 0 else None
    return f"the process {found['name']} (pid {found['pid']})" if found else None
