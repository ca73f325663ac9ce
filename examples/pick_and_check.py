"""Pick a recipe for a use, size it for your context and users, and see what would stop it here.

Run: python examples/pick_and_check.py agents --context 65536 --users 2
"""

from __future__ import annotations

import argparse
import sys

import sparkrecipes as sr


def main() -> int:
    """Print a pick, its size and what stands in its way; 0 ready, 1 blocked, 3 unknown."""
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("words", nargs="?", default="agents")
    cli.add_argument("--context", type=int)
    cli.add_argument("--users", type=int)
    cli.add_argument("--offline", action="store_true")
    asked = cli.parse_args()

    answer = sr.recommend(asked.words, context_tokens=asked.context, users=asked.users)
    if answer.pick is None:
        print(f"nothing suits {asked.words!r}")
        print(*(f"  {out.id}: {out.why[0]}" for out in answer.ruled_out), sep="\n")
        return 1
    pick = answer.pick.id
    print(pick, *answer.pick.why, sep="\n  ")

    fit = sr.estimate_memory(pick, context_tokens=asked.context, users=asked.users)
    print(f"  {fit.verdict}: needs at most {(fit.total_bytes or 0) / 2**30:.1f} GiB,")
    print(f"  users at {fit.context_tokens:,} tokens: {fit.max_users_at_context}")

    report = sr.check_recipe(
        pick, context_tokens=asked.context, users=asked.users, offline=asked.offline
    )
    for finding in report.findings:
        if finding.level != "ok":
            print(f"{finding.level}: {finding.message}\n  {finding.repair}")
    print(f"verdict: {report.verdict}")
    return {"ready": 0, "blocked": 1}.get(report.verdict, 3)


if __name__ == "__main__":
    sys.exit(main())
