"""The round itself: its parts, its plans, what it keeps, and that its figures are true."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes import standard_round as sr
from sparkrecipes.schema.round import Round
from tests.support.replay_server import (
    Engine,
    ReplayServer,
    Request,
    Script,
    answer,
    event,
    page,
    stream,
)
from tests.support.scripted_round import codes, good, measure
from tests.support.timing_retry import measured
from tests.support.timing_server import TimingServer

FILE = Path(sr.__file__)


# True figures


def what_it_did(log: list[dict[str, Any]], tokens: int) -> tuple[float, float]:
    """Median TTFT in ms and decode speed of the requests that a server of known timing served."""
    rows = [row for row in log if row["tokens"] == tokens]
    ttft = statistics.median(1000 * (row["t_first"] - row["t_request"]) for row in rows)
    first = min(row["per_event"] for row in rows)
    speed = statistics.median((tokens - first) / (row["t_last"] - row["t_first"]) for row in rows)
    return ttft, speed


@measured
def test_figures_are_those_of_a_server_of_known_timing() -> None:
    """TTFT, decode, per user, aggregate and prefill, against what the server wrote and when."""
    with TimingServer("t80-r500-words") as server:
        data = sr.run_round(server.base_url, "", quick=True)
        ttft, speed = what_it_did(server.log[2:5], 300)
        _, of_users = what_it_did(server.log[5:9], 300)
        users = [row for row in server.log[5:9] if row["tokens"] == 300]
    wall = max(row["t_last"] for row in users) - min(row["t_request"] for row in users)
    single, together, long = data["single"], data["concurrent"], data["long_prompt"]

    assert {"comparable": True, "n": 3, "token_source": "usage"}.items() <= single.items()
    assert ttft == pytest.approx(single["ttft_ms"]["median"], abs=10)
    assert speed == pytest.approx(single["decode_tok_s"]["median"], rel=0.02)
    assert 1000 / speed == pytest.approx(single["tpot_ms"]["median"], rel=0.02)
    assert 300 / (ttft / 1000 + 299 / speed) == pytest.approx(
        single["e2e_tok_s"]["median"], rel=0.03
    )
    assert of_users == pytest.approx(together["per_user_tok_s"]["median"], rel=0.02)
    assert 4 * of_users == pytest.approx(together["steady_tok_s"]["max"], rel=0.04)
    assert 4 * 300 / wall == pytest.approx(together["aggregate_tok_s"]["max"], rel=0.04)
    assert long["prefill_tok_s"] == pytest.approx(
        1000 * long["prompt_tokens"] / long["ttft_ms"], rel=0.001
    )
    assert [] == data["warnings"]


@measured
def test_speculation_and_reasoning_do_not_move_the_true_figures() -> None:
    """Three tokens an event, half of them reasoning: the true speed still, TTFO apart from TTFT."""
    with TimingServer("t60-r600-c3-k150-words") as server:
        data = sr.run_round(server.base_url, "", only="single")
        ttft, speed = what_it_did(server.log[1:], 300)
    answer_at = ttft + 1000 * 150 / speed

    assert speed == pytest.approx(data["single"]["decode_tok_s"]["median"], rel=0.03)
    assert 3.0 == data["single"]["tokens_per_event"]
    assert ttft == pytest.approx(data["single"]["ttft_ms"]["median"], abs=10)
    assert answer_at == pytest.approx(data["single"]["ttfo_ms"]["median"], abs=20)
    assert answer_at == pytest.approx(data["published_method"]["ttft_ms"], abs=20)
    assert 2 * speed == pytest.approx(data["published_method"]["single_user_tok_s"], rel=0.1)
    assert ["published_blind"] == codes(data)


# Plans


def test_the_quick_round_asks_as_often_as_the_method_says() -> None:
    """Smoke test, a warm-up and 3 singles, 4 users once, the long prompt and its sizing."""
    data, server = measure(good, quick=True)

    assert [24, 300, 300, 300, 300, *[300] * 4, 1, 100] == [
        request.body["max_tokens"] for request in server.chats
    ]
    assert data["stable"] is None
    assert "same_bytes" == data["published_method"]["read_from"]
    assert None not in data["published_method"].values()
    assert 11 == data["stability"]["requests"]


def test_a_quick_round_of_a_slow_server_asks_one_single(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one request takes over 10 s (here: 0.05 s) it is the only one, and no warm-up."""
    monkeypatch.setattr(sr, "SLOW_S", 0.05)
    data, server = measure(lambda _: answer(100, each=0.001), quick=True)

    assert (1, None) == (data["single"]["n"], data["single"]["warmup_ttft_ms"])
    assert 8 == len(server.chats)
    assert 1 == data["published_method"]["n"]


@pytest.mark.parametrize(
    ("only", "requests", "part"),
    [
        ("single", 4, "single"),
        ("concurrent", 16, "concurrent"),
        ("long", 4, "long_prompt"),
        ("stability", 13, None),
    ],
)
def test_a_part_alone_is_a_warmup_and_three(only: str, requests: int, part: str | None) -> None:
    """That part, no smoke test, and the published method's figure from the same bytes."""
    data, server = measure(good, only=only)
    parts = ("single", "concurrent", "long_prompt")

    assert requests == len(server.chats)
    assert [part] == [name for name in parts if data[name]] or part is None
    assert data["smoke"] is None
    assert part is None or "same_bytes" == data["published_method"]["read_from"]


def test_the_full_round_has_every_part_and_a_published_pass_of_its_own() -> None:
    """6 singles, 6 rounds, 3 long prompts; the published prompts without nonce or warm-up."""
    counts = {"process_start_time_seconds": 1.0, "vllm:generation_tokens_total": 0.0}

    def metrics() -> str:
        return "".join(f"{name} {value}\n" for name, value in counts.items())

    engine = Engine(good, metrics=metrics)
    data, server = measure(engine, sustained_minutes=0.02, capabilities=("text",))

    assert (6, 6, 3) == (
        data["single"]["n"],
        data["concurrent"]["rounds"],
        data["long_prompt"]["n"],
    )
    assert 24 == data["concurrent"]["requests"]
    assert data["stable"] is True
    assert data["stability"]["restarted"] is False
    assert "separate_pass" == data["published_method"]["read_from"]
    bare = [r.prompt for r in server.chats if not str(r.prompt).startswith("[ronda ")]
    assert (7, 1, 2) == (
        bare.count(sr.writing_prompt()),
        bare.count(sr.long_prompt()),
        len(set(bare)),
    )
    assert 8 == len(data["varied"])
    assert {"code", "json_tools", "summary", "writing"} == {r["workload"] for r in data["varied"]}
    assert {0.0, 0.7} == {row["temperature"] for row in data["varied"]}
    assert {3} == {row["n"] for row in data["varied"]}
    assert data["sustained"]["requests"] > 4
    assert data["sustained"]["tok_s"] > 0


def test_the_school_method_climbs_its_ladder() -> None:
    """Three scenarios, a warm-up and 3 runs a step, greedy, seed 42, total and per user."""
    data, server = measure(good, method="school", users=[1, 2])

    assert 3 * (1 + 2) * 4 == len(server.chats)
    assert [("chat", 1), ("chat", 2), ("qa", 1), ("qa", 2), ("rag", 1), ("rag", 2)] == [
        (row["scenario"], row["users"]) for row in data["users_curve"]
    ]
    assert {42} == {request.body["seed"] for request in server.chats}
    assert {256, 512} == {request.body["max_tokens"] for request in server.chats}
    assert all(row["aggregate_tok_s"]["n"] == 3 for row in data["users_curve"])
    assert "school" == data["method"]


def test_one_step_of_the_schools_ladder_is_a_curve_too() -> None:
    """Three scenarios of two users; those who fail are named as everywhere."""
    data, _ = measure(good, method="school", users=[2])
    assert [("chat", 2), ("qa", 2), ("rag", 2)] == [
        (row["scenario"], row["users"]) for row in data["users_curve"]
    ]


def test_a_ladder_of_users_gives_a_curve() -> None:
    """Each step apart; four users are the figure that is compared."""
    data, _ = measure(good, only="concurrent", users=[1, 2, 4])

    assert [1, 2, 4] == [row["users"] for row in data["users_curve"]]
    assert 4 == data["concurrent"]["users"]
    assert data["published_method"]["four_users_total_tok_s"] > 0


def test_other_numbers_of_users_are_not_set_beside_four() -> None:
    """The published total is of four users; two give none."""
    data, _ = measure(good, only="concurrent", users=2)

    assert 2 == data["concurrent"]["users"]
    assert data["published_method"]["four_users_total_tok_s"] is None


def test_each_prompt_starts_with_a_word_of_its_own() -> None:
    """C110: no two requests share a first block that a prefix cache could hold."""
    _, server = measure(good, quick=True)
    starts = [request.prompt[:20] for request in server.chats]

    assert len(set(starts)) == len(starts)
    assert all(start.startswith("[ronda ") for start in starts)


def test_prompts_are_of_the_published_kind_and_size() -> None:
    """Spanish writing of 200 words, 3,000 log lines, 400 lines to summarise, code, JSON."""
    assert "200 palabras" in sr.writing_prompt()
    assert 3000 == sr.long_prompt().count("paso")
    assert sr.long_prompt() == sr.long_prompt()
    assert 400 == sr.varied_prompts()["summary"].count("En la visita")
    assert 4 == len({sr.writing_prompt(user) for user in range(4)})


# What is kept


def test_every_request_is_saved_as_it_comes() -> None:
    """Each save is a whole round of its type, and knows one request more or the same."""
    saved: list[dict[str, Any]] = []
    measure(good, only="single", save=lambda data: saved.append(json.loads(json.dumps(data))))

    for data in saved:
        Round.model_validate_json(json.dumps(data))
    assert [1, 2, 3, 4] == sorted({data["stability"]["requests"] for data in saved})
    assert [1, 2, 3] == sorted({data["single"]["n"] for data in saved if data["single"]})


def test_ctrl_c_keeps_what_was_measured() -> None:
    """The third single is under way: two are kept, with a warning, and its connection is closed."""
    seen: list[int] = []

    def chat(_: Request) -> Script:
        seen.append(1)
        if len(seen) == 4:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            return stream([(0.0, event({"content": "a"}))], "hold", whole=False)
        return answer(100)

    begin = time.perf_counter()
    data, _ = measure(chat, only="single")

    assert 2 == data["single"]["n"]
    assert ["interrupted"] == codes(data)
    assert time.perf_counter() - begin < 3


def test_ctrl_c_breaks_off_all_users() -> None:
    """No thread goes on waiting for an answer that nobody wants any more."""
    seen: list[int] = []

    def chat(_: Request) -> Script:
        seen.append(1)
        if len(seen) == 4:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return stream([(0.0, event({"content": "a"}))], "hold", whole=False)

    before = set(threading.enumerate())
    with ReplayServer(Engine(chat)) as server:
        data = sr.run_round(server.base_url, "m", only="concurrent")
        left = [t for t in set(threading.enumerate()) - before if "(run)" in t.name]
        for thread in left:
            thread.join(2)

    assert ["interrupted"] == codes(data)
    assert [] == [thread for thread in left if thread.is_alive()]


def test_a_killed_process_leaves_what_it_had(tmp_path: Path) -> None:
    """C113: killed in mid-request, the file is whole JSON with the requests before it."""
    seen: list[int] = []

    def chat(_: Request) -> Script:
        seen.append(1)
        if len(seen) == 4:
            return stream([(0.0, event({"content": "a"}))], "hold", whole=False)
        return answer(100)

    with ReplayServer(Engine(chat)) as server:
        argv = ["--base-url", server.base_url, "--model", "m", "--only", "single"]
        process = subprocess.Popen(
            [sys.executable, str(FILE), *argv, "--output", str(tmp_path / "round.json")],
            stderr=subprocess.DEVNULL,
        )
        while len(seen) < 4:
            time.sleep(0.02)
        time.sleep(0.1)
        process.kill()
        process.wait()

    kept = json.loads((tmp_path / "round.json").read_text())
    assert 2 == kept["single"]["n"]
    assert ["round.json"] == [path.name for path in tmp_path.iterdir()]


# The endpoint


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("localhost:8000", "http://localhost:8000/v1"),
        ("https://h/llm/v1", "https://h:443/llm/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_a_base_url_with_or_without_v1_is_the_same(given: str, url: str) -> None:
    """And with or without a scheme, behind a path, over IPv6."""
    assert url == sr.Endpoint.parse(given).url


@pytest.mark.parametrize(
    "given",
    [
        "",
        "ftp://h",
        "http://",
        "http://u:secret@h",
        "http://h:99999",
        "http://h/?a=1",
        "http://h\r\nX",
    ],
)
def test_a_bad_base_url_is_refused_and_never_repeated(given: str) -> None:
    """The message says how it should look, and holds no credentials."""
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:8000") as caught:
        sr.run_round(given, "m")
    assert "secret" not in str(caught.value)


def test_the_api_key_is_sent_and_never_shown() -> None:
    """As a Bearer token, on every page; an error that repeats it is masked."""

    def chat(request: Request) -> Script:
        return page({"error": f"bad key {request.head}"}, "401 Unauthorized")

    lines: list[str] = []
    data, server = measure(chat, api_key="sk-secret", progress=lines.append)
    assert all("Authorization: Bearer sk-secret" in request.head for request in server.requests)
    assert "sk-secret" not in json.dumps(data) + "".join(lines)
    assert "***" in data["stability"]["errors"][0]

    _, open_server = measure(good, only="single")
    assert all("Authorization" not in request.head for request in open_server.requests)


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate for 127.0.0.1 that this process trusts."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "cert.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


def test_https_is_spoken_and_certificates_are_checked(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same round over TLS; an unknown certificate is a named failure."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    server = ReplayServer(Engine(good))
    server.wrap = lambda sock: context.wrap_socket(sock, server_side=True)
    with server:
        url = server.base_url.replace("http://", "https://")
        data = sr.run_round(url, "m", only="single")
        monkeypatch.delenv("SSL_CERT_FILE")
        refused = sr.run_round(url, "m", only="single")

    assert (3, 0) == (data["single"]["n"], data["stability"]["failed"])
    assert "CERTIFICATE_VERIFY_FAILED" in refused["stability"]["errors"][0]


# The file


def test_the_file_stands_alone() -> None:
    """It imports the standard library and nothing else."""
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(FILE.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }

    assert imported <= sys.stdlib_module_names


def test_a_copy_of_the_file_runs_by_itself(tmp_path: Path) -> None:
    """JSON on stdout and nothing else there; 0 for a good round, 1 for a failure, 2 for misuse."""
    copy = shutil.copy(FILE, tmp_path / "standard_round.py")

    def run(url: str, *more: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-I", "-S", str(copy), "--base-url", url, *more]
        return subprocess.run(
            argv, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ)
        )

    with ReplayServer(Engine(good)) as server:
        fine = run(server.base_url, "--model", "m", "--quick", "--users", "2")
    gone = run(server.base_url, "--model", "m", "--quick")
    misuse = run("ftp://nowhere")

    Round.model_validate_json(fine.stdout)
    assert (0, 1, 2) == (fine.returncode, gone.returncode, misuse.returncode)
    assert "single user" in fine.stderr
    assert 1 == json.loads(gone.stdout)["stability"]["failed"]
    assert "must look like" in misuse.stderr
    assert "Traceback" not in gone.stderr + misuse.stderr
