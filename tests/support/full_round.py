"""A full round with every part measured, made up to draw and to compare."""

from __future__ import annotations

from typing import Any

from sparkrecipes.schema.round import Round


def spread(median: float, share: float = 0.02, n: int = 6) -> dict[str, Any]:
    """A figure whose repeats lie within a share of its median."""
    low, high = median * (1 - share), median * (1 + share)
    values = (low, *[median] * (n - 2), high) if n > 1 else (median,)
    return {"median": median, "min": low, "max": high, "n": n, "values": values}


def step(users: int, total: float, scenario: str | None = None) -> dict[str, Any]:
    """So many users at once."""
    return {
        "users": users,
        "rounds": 6,
        "aggregate_tok_s": spread(total),
        "per_user_tok_s": spread(total / users),
        "ttft_ms": spread(110.0 + 10 * users),
        "requests": 6 * users,
        "e2e_s": {"n": 6 * users, "p50": 4.2, "p95": 4.9 if users >= 4 else None, "p99": None}
        | {"max": 5.3},
        "scenario": scenario,
    }


def acceptance(rate: float) -> dict[str, Any]:
    """What two draft tokens gave."""
    return {
        "rate_pct": rate,
        "mean_length": 1 + rate / 50,
        "per_position_pct": (rate + 12, rate - 12),
        "drafts": 1200,
        "source": "vllm",
    }


def full_round(**changes: Any) -> Round:
    """A full, stable round of the agents' pick; keys like ``server__model`` change one value."""
    kinds = {"code": 84.2, "json": 75.0, "summary": 69.3, "writing": 55.1}
    data: dict[str, Any] = {
        "method": "october",
        "started_at": "2026-12-02T10:00:00+00:00",
        "tool_version": "0.1.0",
        "server": {
            "base_url": "http://127.0.0.1:8000/v1",
            "model": "qwen3.6-35b-a3b",
            "engine": "vllm",
            "engine_version": "0.31.0",
        },
        "machine": None,
        "recipe_id": "qwen3.6-35b-a3b-nvfp4-vllm-mtp",
        "simulated": False,
        "smoke": {"words": True, "tool_call": True, "image": True},
        "single": {
            "n": 6,
            "ttft_ms": spread(106.0),
            "ttfo_ms": spread(106.0),
            "decode_tok_s": spread(102.3),
            "e2e_tok_s": spread(98.7),
            "prompt_tokens": spread(60.0),
            "completion_tokens": spread(300.0, 0.0),
            "token_source": "usage",
            "icl_ms": {"n": 700, "p50": 23.0, "p95": 26.5, "p99": 31.0, "max": 44.0},
        },
        "concurrent": step(4, 240.0),
        "users_curve": (step(2, 150.0), step(8, 330.0), step(16, 410.0)),
        "long_prompt": {
            "state": "measured",
            "prompt_tokens": 46012,
            "cached_tokens": 0,
            "wall_s": 9.5,
            "ttft_ms": 8450.0,
            "prefill_tok_s": 5445.0,
            "n": 3,
            "wall_s_spread": spread(9.5, n=3),
            "prefill_tok_s_spread": spread(5445.0, n=3),
        },
        "stability": {"requests": 140, "failed": 0, "errors": (), "restarted": False},
        "stable": True,
        "varied": tuple(
            {
                "workload": kind,
                "temperature": temperature,
                "n": 6,
                "decode_tok_s": spread(rate + 10 - 8 * temperature),
                "acceptance": acceptance(rate - 10 * temperature),
            }
            for kind, rate in kinds.items()
            for temperature in (0.0, 0.7)
        ),
        "sustained": {
            "minutes": 15.0,
            "users": 4,
            "tok_s": 208.0,
            "per_minute_tok_s": tuple(210.0 - n * 0.4 + (n % 3) for n in range(15)),
            "drift_pct": -1.9,
            "failed": 0,
            "acceptance": acceptance(70.1),
            "mem_available_low_bytes": 40 * 10**9,
            "requests": 620,
            "drift": "none",
        },
        "acceptance": acceptance(69.3),
        "published_method": {
            "single_user_tok_s": 102.3,
            "ttft_ms": 106.0,
            "four_users_total_tok_s": 240.0,
            "long_prompt_46k_s": 9.5,
        },
        "warnings": (),
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = data
        for parent in parents:
            place = place[parent]
        place[last] = value
    return Round.model_validate(data)
