"""Runs ``sparkrun recipe validate --json`` for each file named; one JSON answer a line.

Run by the Python of .ci/parts/clusters.sh, which holds sparkrun; one process for all files, because
each start of it takes a second.
"""

import json
import sys

from click.testing import CliRunner
from sparkrun.cli import main

for path in sys.argv[1:]:
    done = CliRunner().invoke(main, ["recipe", "validate", "--json", path])
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    failed = {"valid": False, "errors": 1, "issues": [{"code": f"exit {done.exit_code}"}]}
    print(lines[-1] if lines else json.dumps(failed))
