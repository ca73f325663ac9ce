"""Measure any OpenAI-compatible endpoint, and compare it with the published figures of a recipe.

Run: python examples/measure_endpoint.py http://127.0.0.1:8000 qwen3.6-35b-a3b-nvfp4-vllm-mtp
"""

from __future__ import annotations

import sys

import sparkrecipes as sr


def main(base_url: str, recipe: str | None = None, only: str | None = None) -> int:
    """Print true figures, and the report where a recipe is named; 1 if it is slower or fails."""
    measured = sr.run_round(recipe, base_url=base_url, quick=True, only=only, progress=print)
    single = measured.single
    if single and single.ttft_ms and single.decode_tok_s:
        decode = single.decode_tok_s
        print(f"TTFT {single.ttft_ms.median:.0f} ms, median of {single.n}")
        print(f"decode {decode.median:.1f} tok/s ({decode.min:.1f} to {decode.max:.1f})")
    for warning in measured.warnings:
        print("warning:", warning)
    if recipe is None:
        return 1 if measured.stability.failed else 0

    report = sr.compare(measured, recipe=recipe)
    print(report.summary)
    return {"matches": 0, "faster": 0, "not_comparable": 3}.get(report.verdict, 1)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(f"usage: {sys.argv[0]} BASE_URL [RECIPE [single|concurrent|long|stability]]")
    try:
        sys.exit(main(*sys.argv[1:]))
    except sr.SparkRecipesError as err:
        sys.exit(f"{err.message}\n{err.repair}")
