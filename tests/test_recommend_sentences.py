"""What sentences say: every reader by itself, and words that only look like a wish."""

from __future__ import annotations

from typing import Any

import pytest

from sparkrecipes.recommendation.sentences import read_sentence, user_counts

ENGINES = ("atlas", "nim", "sglang", "vllm")


def found(text: str) -> dict[str, Any]:
    """Return the constraints of a sentence."""
    return read_sentence(text, ENGINES).found


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("4 users", 4),
        ("four users", 4),
        ("para dos usuarios", 2),
        ("un usuario", 1),
        ("a single user", 1),
        ("30 alumnos", 30),
        ("una clase de 25", 25),
        ("a team of twelve", 12),
        ("3 concurrent requests", 3),
        ("8 people at the same time", 8),
        ("doce personas a la vez", 12),
        ("veinte estudiantes", 20),
        ("0 users", 0),
        ("4 GPUs", None),
        ("users", None),
    ],
)
def test_users(text: str, users: int | None) -> None:
    """A number of people, in figures or words."""
    assert users == found(text).get("users")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("4 users now, 16 later", (4, 16)),
        ("4 users, later up to 16", (4, 16)),
        ("agents for 4 to 16 users", (4, 16)),
        ("between four and ten people", (4, 10)),
        ("30 alumnos, español, y 2 profesores", (30, 2)),
        ("4 usuarios ahora, 16 más adelante", (4, 16)),
        ("dos personas y luego hasta diez", (2, 10)),
        ("entre 4 y 16 usuarios", (4, 16)),
        ("a class of 30 students", (30,)),
        ("4 users at once, each of 4 users with 64K", (4,)),
        ("4 users now, later 64K", (4,)),
        ("4 usuarios, luego 40 GB libres", (4,)),
        ("Qwen 3.6 or 2 users", (2,)),
        ("64K, 20 tok/s per user", ()),
    ],
)
def test_every_number_of_users(text: str, counts: tuple[int, ...]) -> None:
    """All that are named, in order and once; what is no number of people is none."""
    assert counts == user_counts(text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("64K", 65536),
        ("128k de contexto", 131072),
        ("contexto de 32768", 32768),
        ("131072 tokens", 131072),
        ("131,072 tokens of context", 131072),
        ("64 mil tokens", 64000),
        ("un millón de tokens", 1_000_000),
        ("1 million tokens", 1_000_000),
        ("1M context", 1_048_576),
        ("200 thousand tokens", 200_000),
        ("46 words", None),
        ("year 2026", None),
    ],
)
def test_context(text: str, tokens: int | None) -> None:
    """K is 1024, mil and thousand are 1000; a bare number needs the word."""
    assert tokens == found(text).get("context_tokens")


def test_context_times_users() -> None:
    """As the published pages write it."""
    assert {"context_tokens": 131072, "users": 4} == found("128K x 4")
    assert {"context_tokens": 65536, "users": 2} == found("64k \u00d7 2")


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("at least 20 tok/s per user", 20.0),
        ("mínimo 15,5 tokens por segundo", 15.5),
        ("30 t/s", 30.0),
        ("25 tps", 25.0),
        ("12.5 tokens per second for each user", 12.5),
        ("respuesta interactiva", 10.0),
        ("interactive", 10.0),
        ("en tiempo real", 10.0),
        ("20 tokens", None),
    ],
)
def test_speed(text: str, speed: float | None) -> None:
    """A rate of each user; interactive is what a person reads at, 10 tok/s."""
    assert speed == found(text).get("min_tok_s_per_user")


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("leave 40 GB free", {"leave_free_gb": 40.0}),
        ("keep 10 GB for the desktop", {"leave_free_gb": 10.0}),
        ("que deje 40 GB libres", {"leave_free_gb": 40.0}),
        ("dejando 12,5 GB", {"leave_free_gb": 12.5}),
        ("60 GB free now", {"free_now_gb": 60.0}),
        ("hay 60 GB libres", {"free_now_gb": 60.0}),
        ("50 GiB available", {"free_now_gb": 53.687}),
        ("60 GB free now, leave 20 GB free", {"free_now_gb": 60.0, "leave_free_gb": 20.0}),
        ("leave 40 free", {}),
        ("0 GB", {}),
    ],
)
def test_memory(text: str, wish: dict[str, float]) -> None:
    """What must stay free and what is free now; GiB becomes GB."""
    assert wish == found(text)


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("en español", {"languages": ("es",)}),
        ("Spanish and Valencian", {"languages": ("es", "ca")}),
        ("castellano", {"languages": ("es",)}),
        ("apache licence", {"licences": ("apache",)}),
        ("licencia MIT", {"licences": ("mit",)}),
        ("mit 4 Leuten", {}),
        ("open source", {"licences": ("apache-2.0", "mit")}),
        ("código abierto", {"licences": ("apache-2.0", "mit")}),
        ("with vLLM", {"engines": ("vllm",)}),
        ("sin NIM", {"engines": ("atlas", "sglang", "vllm")}),
        ("on llama.cpp", {"engines": ("llama.cpp",)}),
        ("TensorRT-LLM", {"engines": ("tensorrt llm",)}),
        ("without Ollama", {}),
        ("not on vllm", {"engines": ("atlas", "nim", "sglang")}),
        ("nimble", {}),
        ("", {}),
        ("?!", {}),
    ],
)
def test_languages_licences_engines(text: str, wish: dict[str, Any]) -> None:
    """Named or refused; a German word is no licence, and a part of a word no engine."""
    assert wish == found(text)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("open source agents", "agents"),
        ("código abierto para agentes", "para agentes"),
        ("razonamiento con 50 GB libres ahora", "razonamiento con"),
        ("4 users at once", "users"),
        ("five developers", "developers"),
        ("a small team of 5 developers", "a team of developers"),
        ("un equipo pequeño de 5 programadores", "un equipo de programadores"),
        ("a small model for 3 people", "a small model for people"),
    ],
)
def test_what_was_read_is_not_read_again(text: str, rest: str) -> None:
    """Open source is not about code, and four users at once are not two recipes."""
    told = read_sentence(text, ENGINES).rest
    assert rest == " ".join(told.replace(",", " ").split())


def test_a_huge_or_strange_sentence_is_read_in_time() -> None:
    """Two thousand characters are read at most; nothing raises."""
    for text in ("4 users " * 200_000, "9" * 100_000 + "k", "\u0000\ud83d", "1" * 50 + " users"):
        read_sentence(text, ENGINES)
