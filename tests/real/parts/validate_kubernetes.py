"""Checks objects with Kubernetes' own schemas: JSON on stdin, one a line; faults on stdout.

Run by the Python of .ci/parts/clusters.sh, which holds kubernetes-validate.
"""

import json
import sys

import kubernetes_validate

for line in sys.stdin:
    tree = json.loads(line)
    try:
        kubernetes_validate.validate(tree, "1.37", strict=True)
    except kubernetes_validate.ValidationError as fault:
        print(f"{tree['kind']} {tree['metadata']}: {fault.message}")
