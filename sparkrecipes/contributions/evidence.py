"""From a round to an evidence file: its figures and conditions, and nothing that names a host.

Only fields that are listed here are taken from a round: addresses, paths, messages and names of
containers stay where they were.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from sparkrecipes.errors import SparkRecipesError
from sparkrecipes.schema.machine import Machine
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.round import Round, VariedRow
from sparkrecipes.strict_yaml import parse
from sparkrecipes.strict_yaml.editing import spans_of

SCHEMA_LINE = "# yaml-language-server: $schema=../schemas/evidence.schema.json\n"
CONTRIBUTED_RANK = 3
"""Behind what a publisher measured and described: nobody else has seen the machine."""

VOID = {
    "other_traffic": "somebody else used the server meanwhile",
    "wrong_model": "another model answered",
    "garbage_output": "the answers are no words",
    "wedged": "the server stopped giving tokens",
    "host_degraded": "the machine ran with lowered clocks",
    "interrupted": "the round was ended before it was done",
}
"""Warnings of a round after which its figures say nothing of the recipe."""

METHOD_TEXT = (
    "sparkrecipes round, which has the October round's method: one user, 3 streamed requests of a "
    "fixed Spanish prompt, 300 tokens at most, temperature 0, thinking off, median; four users at "
    "once, tokens of all over the wall time; a prompt of about 46,000 tokens, wall time. Figures "
    "are those that the October script would have printed on the same bytes."
)
_VERSION = re.compile(r"v?\d+(\.\d+)*[A-Za-z0-9.+_-]{0,30}")
_CODE = re.compile(r"[a-z_]{1,40}")


class NotContributable(SparkRecipesError):
    """A round that may not become evidence; the message says why."""

    default_code = "not_contributable"


def evidence_of(
    round_: Round, recipe: Recipe, machine: Machine | None, *, publisher: str
) -> dict[str, Any]:
    """Return the evidence file of a round, as a tree.

    Args:
        round_: What was measured.
        recipe: The recipe that was served.
        machine: The machine that the round names; None where the catalog does not know it.
        publisher: Who contributes it, in their own words.

    Raises:
        NotContributable: It was simulated, shows nothing of the recipe, or does not say where it
            was measured.
    """
    require_real(round_)
    hardware = hardware_of(round_, machine)
    when = re.match(r"\d{4}-\d\d-\d\dT[\d:]{8}", round_.started_at)
    if when is None:
        raise NotContributable("the round does not say when it began", repair="measure again")
    date, figures = when[0][:10], figures_of(round_)
    if not any(value is not None for key, value in figures.items() if key != "stable"):
        message = "the round has no figure of the published method"
        raise NotContributable(message, repair="measure: sparkrecipes round RECIPE")
    rows = workloads_of(round_)
    return {
        "title": f"Contributed round of {recipe.title}, {date}",
        "publisher": publisher,
        "method": "contributed",
        "method_text": METHOD_TEXT,
        "hardware": hardware,
        "trust_rank": CONTRIBUTED_RANK,
        "memory_unit": "GB",
        "memory_note": "not measured by a round: null in every row",
        "sources": [f"sparkrecipes {version_in(round_.tool_version) or ''}, round of {when[0]}"],
        "date": date,
        "conditions": conditions_of(round_, recipe),
        "rows": [
            {
                "id": recipe.id,
                "date": date,
                "context_tokens": round_.server.context_tokens or recipe.serving.context_tokens,
                "users": recipe.serving.users,
                "kv_cache_dtype": recipe.serving.kv_cache_dtype,
                "figures": figures,
                "notes": notes_of(round_),
            }
        ],
        **({"by_workload": [rows | {"recipe": recipe.id}]} if rows else {}),
    }


def require_real(round_: Round) -> None:
    """Refuse a round that shows nothing of the recipe.

    Raises:
        NotContributable: With the reason.
    """
    repair = "measure on the machine itself: sparkrecipes round RECIPE"
    if round_.simulated:
        raise NotContributable("the round is a rehearsal: its figures are played", repair=repair)
    if round_.method != "october":
        message = f"the round has the method {round_.method}, whose figures are no October row"
        raise NotContributable(message, repair="measure with --method october")
    codes = [warning.partition(":")[0] for warning in round_.warnings]
    for code in codes:
        if code in VOID:
            raise NotContributable(f"the round shows nothing: {VOID[code]}", repair=repair)
    if round_.smoke and round_.smoke.words is False:
        raise NotContributable("the round shows nothing: the answers are no words", repair=repair)
    if round_.machine is None:
        message = "the round does not say which machine served it: it was measured from another"
        raise NotContributable(message, repair=repair)


def hardware_of(round_: Round, machine: Machine | None) -> str:
    """Say what was measured on: the machine's title, its memory, and its GPU under load."""
    seen = round_.machine or {}
    total = seen.get("mem_total_bytes")
    words = [machine.title if machine else "a machine that the catalog does not know"]
    if isinstance(total, int):
        words.append(f"MemTotal {total / 2**30:.2f} GiB")
    if round_.gpu and round_.gpu.sm_clock_mhz:
        words.append(f"SM clock {round_.gpu.sm_clock_mhz.median:.0f} MHz (median under load)")
    if round_.gpu and round_.gpu.temperature_c:
        words.append(f"GPU {round_.gpu.temperature_c.max:.0f} C at most")
    return ", ".join(words)


def conditions_of(round_: Round, recipe: Recipe) -> dict[str, Any]:
    """Return under what was measured."""
    return {
        "engine": recipe.engine,
        "engine_version": version_in(round_.server.engine_version) or recipe.engine_version,
        "context_tokens": round_.server.context_tokens or recipe.serving.context_tokens,
        "users": recipe.serving.users,
        "kv_cache_dtype": recipe.serving.kv_cache_dtype,
        "timing": "after_first_token",
        "timing_note": "tokens over the time after the first one that the October script would see",
        "max_answer_tokens": 300,
    }


def figures_of(round_: Round) -> dict[str, Any]:
    """Return the figures of the published method, rounded as they are reported."""
    seen = round_.published_method
    four = round_.concurrent is not None and round_.concurrent.users == 4
    return {
        "single_user_tok_s": rounded(seen.single_user_tok_s),
        "four_users_total_tok_s": rounded(seen.four_users_total_tok_s) if four else None,
        "ttft_ms": rounded(seen.ttft_ms),
        "long_prompt_46k_s": rounded(seen.long_prompt_46k_s),
        "load_min": None,
        "memory_gb": None,
        "stable": round_.stable,
    }


def notes_of(round_: Round) -> list[str]:
    """Say how much stands behind the figures, and how the round was warned of."""
    seen = round_.published_method
    requests, failed = round_.stability.requests, round_.stability.failed
    notes = [f"{requests} requests, {failed} failed; {seen.n or 'few'} behind the medians"]
    if spread := round_.single and round_.single.decode_tok_s:
        low, high = rounded(spread.min), rounded(spread.max)
        notes.append(f"decode speed of one user {low} to {high} tok/s by the true definition")
    codes = sorted({warning.partition(":")[0] for warning in round_.warnings})
    if codes := [code for code in codes if _CODE.fullmatch(code)]:
        notes.append(f"warnings of the round: {', '.join(codes)}")
    return notes


def workloads_of(round_: Round) -> dict[str, Any] | None:
    """Return speed and acceptance by kind of prompt; None where they were not measured."""
    rows = [workload_row(row) for row in round_.varied if row.decode_tok_s and not row.failed]
    if not rows:
        return None
    sustained, seen = None, round_.sustained
    if seen and seen.tok_s and seen.minutes and seen.users:
        sustained = {
            "minutes": seen.minutes,
            "users": seen.users,
            "tok_s": rounded(seen.tok_s),
            "acceptance_pct": rounded(seen.acceptance.rate_pct) if seen.acceptance else None,
            "failed_requests": seen.failed,
        }
    return {"workloads": rows, "sustained": sustained}


def workload_row(row: VariedRow) -> dict[str, Any]:
    """Return one kind of prompt at one temperature."""
    speed = row.decode_tok_s
    return {
        "workload": re.sub(r"[^a-z0-9._-]+", "-", row.workload.lower()).strip("-") or "prompt",
        "temperature": row.temperature,
        "tok_s": rounded(speed.median) if speed else None,
        "without_speculation_tok_s": None,
        "acceptance_pct": rounded(row.acceptance.rate_pct) if row.acceptance else None,
    }


def rounded(value: float | None) -> float | None:
    """Return a figure with two decimals: more is noise."""
    return None if value is None else round(float(value), 2)


def version_in(text: str | None) -> str | None:
    """Return the release that a text begins with, and nothing else of it."""
    found = _VERSION.match(text or "")
    return found[0] if found else None


def evidence_text(tree: dict[str, Any]) -> str:
    """Write an evidence file; reading it strictly gives the same tree."""
    text = SCHEMA_LINE + yaml.safe_dump(
        tree, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False
    )
    if parse(text).tree != tree:
        raise NotContributable("the round holds a text that cannot be written as strict YAML")
    return text


def pointing_at(text: str, reference: str) -> str:
    """Return a recipe's text with one more row of evidence; comments and layout stay."""
    tree = parse(text).tree
    if reference in tree.get("evidence", []):
        return text
    if "evidence" not in tree:
        begin = spans_of(text).keys["sources",][0]
        return f"{text[:begin]}evidence:\n  - {reference}\n{text[begin:]}"
    spans = spans_of(text)
    if ("evidence",) not in spans.block:
        begin, end = re.search(r"^evidence:.*(?:\n|$)", text, re.MULTILINE).span()  # type: ignore[union-attr]
        old = "".join(f"\n  - {one}" for one in tree["evidence"])
        return f"{text[:begin]}evidence:{old}\n  - {reference}\n{text[end:]}"
    last = spans.scalars["evidence", len(tree["evidence"]) - 1]
    begin = text.rfind("\n", 0, last[0]) + 1
    lead = re.match(r" *- +", text[begin : last[0]])
    end = text.find("\n", last[1] - 1 if text[last[1] - 1] == "\n" else last[1])
    return f"{text[:end]}\n{lead[0] if lead else '  - '}{reference}{text[end:]}"
