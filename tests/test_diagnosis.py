"""Diagnosis: the cause and not its consequence, quickly, and no secret in what is shown."""

from __future__ import annotations

import json
import re
import string
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sparkrecipes.catalog import open_catalog
from sparkrecipes.diagnosis import diagnose, filled
from sparkrecipes.redaction import redact
from sparkrecipes.schema.findings import DiagnosisRule, lead_of

RULES = tuple(open_catalog().diagnoses.values())
CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/diagnosis_cases.jsonl").read_text().splitlines()
]
"""Field reports, each with its public source."""

INFO = "(EngineCore pid=154) INFO 05-10 10:51:18 [loggers.py:259] Engine 000: Running: 1 reqs\n"


def ids(log: str) -> list[str]:
    """Ids of the diagnoses, the top one first."""
    return [found.id for found in diagnose(log, RULES).diagnoses]


def rule(id_: str) -> DiagnosisRule:
    """A rule of the catalog."""
    return next(r for r in RULES if r.id == id_)


def as_rule(**changes: Any) -> DiagnosisRule:
    """A rule that finds "it broke", changed as a test needs."""
    fields = {
        "id": "some_cause",
        "title": "A cause",
        "patterns": ["it broke"],
        "cause": "It broke.",
        "remedy": "Mend it.",
        "confidence": "high",
        "example": "it broke",
        "sources": ["https://example.org/1"],
    }
    return DiagnosisRule.model_validate_json(json.dumps(fields | changes))


@pytest.mark.parametrize("wanted", RULES, ids=lambda r: r.id)
def test_each_example_has_its_own_diagnosis_and_no_other(wanted: DiagnosisRule) -> None:
    """A rule finds its own real example, and no other rule takes it for its own."""
    assert [wanted.id] == ids(wanted.example)


def test_there_are_many_and_each_has_a_source() -> None:
    """At least forty, each with a public source, and no two with one example."""
    assert len(RULES) >= 40
    assert all(source.startswith("https://") for rule in RULES for source in rule.sources)
    assert len(RULES) == len({rule.example for rule in RULES})


@pytest.mark.parametrize("wanted", RULES, ids=lambda r: r.id)
def test_examples_are_found_inside_a_real_looking_log(wanted: DiagnosisRule) -> None:
    """Lines before and after, Windows line ends and colours change nothing."""
    log = INFO * 40 + wanted.example + "\n" + INFO * 40
    coloured = log.replace("(EngineCore", "\x1b[0;36m(EngineCore").replace("\n", "\r\n")
    assert [wanted.id] == ids(log)
    assert [wanted.id] == ids(coloured)


def case_log(case: dict[str, Any]) -> str:
    """A case's input as a person would paste it."""
    given_ = case["input"]
    if isinstance(given_, str):
        return given_
    if isinstance(given_, list):
        return "\n".join(text for _, text in given_)
    return json.dumps(given_)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_field_cases(case: dict[str, Any]) -> None:
    """The top answer is the one that the report expects.

    C47, C63, C64, C66, C67, C69, C73, C74, C76, C77, C78, C80, C82, C84, C85, C87, C88, C89, C90,
    C92 and C94.
    """
    report = diagnose(case_log(case), RULES)
    assert case["diagnosis"] == report.diagnoses[0].id


def test_field_case_values() -> None:
    """C82, C84, C85: the figures of the line, as the case expects them."""
    seen = {c["id"]: diagnose(case_log(c), RULES).diagnoses[0].values for c in CASES}
    wanted = {c["id"]: c["values"] for c in CASES if c["id"] in ("C82", "C84")}
    for id_, values in wanted.items():
        assert values == {name: float(seen[id_][name]) for name in values}
    parsers = next(c["values"] for c in CASES if c["id"] == "C85")
    assert parsers["parser"] == seen["C85"]["parser"]
    assert parsers["offered"] == seen["C85"]["offered"].split(", ")


def test_the_largest_fraction_is_said() -> None:
    """C84: the remedy is a fraction that was free, and never a smaller model."""
    found = diagnose(rule("not_enough_free_memory_for_fraction").example, RULES).diagnoses[0]
    assert "0.61" in found.remedy
    assert "smaller model" not in found.remedy


def test_progress_is_that_of_the_last_line() -> None:
    """C76: a start that still loads is no failure, and how far it came is said."""
    found = diagnose(case_log(next(c for c in CASES if c["id"] == "C76")), RULES).diagnoses[0]
    assert ("still_loading", "4", "9") == (found.id, found.values["done"], found.values["shards"])


@pytest.mark.parametrize("at", range(20, 230, 3))
def test_a_line_broken_by_the_terminal(at: int) -> None:
    """C82: broken anywhere, in the middle of a word or of a number, it is still understood."""
    line = rule("kv_cache_too_small").example
    report = diagnose(f"INFO before\n{line[:at]}\n{line[at:]}\nINFO after", RULES)
    assert ["kv_cache_too_small"] == [found.id for found in report.diagnoses]
    assert "34736" == report.diagnoses[0].values["estimated_max_len"]


def test_a_line_wrapped_between_words() -> None:
    """Wrapped and indented by a log viewer, a line is one line."""
    line = rule("kv_cache_too_small").example
    wrapped = line.replace(" which is larger", "\n    which is larger")
    assert "3.18" == diagnose(wrapped, RULES).diagnoses[0].values["available_gib"]


CONSEQUENCE = (
    "(EngineCore_DP0 pid=212) ERROR 10-24 16:30:27 [core.py:866] EngineCore failed to start.\n"
    "{cause}\n"
    "(APIServer pid=1) Traceback (most recent call last):\n"
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {{'EngineCore_DP0': 1}}\n"
)


@pytest.mark.parametrize("wanted", [r for r in RULES if not r.consequence], ids=lambda r: r.id)
def test_a_consequence_never_outranks_its_cause(wanted: DiagnosisRule) -> None:
    """Above or below it, "engine core initialization failed" is not shown beside a cause."""
    found = ids(CONSEQUENCE.format(cause=wanted.example))
    if wanted.id == "engine_ready_timeout":  # an ERROR line above: then it is no timeout
        assert ["engine_core_failed"] == found
    else:
        assert [wanted.id] == found


def test_a_consequence_alone_is_shown_as_one() -> None:
    """With nothing else known, the answer says that the cause stands above, at low confidence."""
    found = diagnose(CONSEQUENCE.format(cause="SomethingNew: a new thing"), RULES).diagnoses
    assert [("engine_core_failed", "low")] == [(d.id, d.confidence) for d in found]


def test_two_causes_are_ordered_by_priority_and_then_by_place() -> None:
    """A wrong image outranks a taken port; equals come in the order of the log."""
    port, disk = rule("port_in_use").example, rule("disk_full").example
    arch = rule("wrong_architecture").example
    assert ["wrong_architecture", "disk_full", "port_in_use"] == ids(f"{port}\n{disk}\n{arch}")
    same = [as_rule(id="a", patterns=["second"]), as_rule(id="b", patterns=["first"])]
    assert ["b", "a"] == [d.id for d in diagnose("first\nsecond", same).diagnoses]


def test_a_remedy_for_custom_code_leaves_the_decision_to_the_person() -> None:
    """C87: what it means and where to look; the tool does not offer to add the flag."""
    wanted = rule("needs_trust_remote_code")
    assert "decision" in wanted.cause
    assert wanted.remedy.startswith("Read the code")


def test_nothing_known_gives_no_diagnosis_and_still_the_first_error() -> None:
    """An unknown failure is not explained, and its line is shown."""
    log = f'{INFO}Traceback (most recent call last):\n  File "a.py"\nOddError: 42 is odd\n{INFO}'
    report = diagnose(log, RULES)
    assert () == report.diagnoses
    assert "OddError: 42 is odd" == report.first_error
    assert None is diagnose(INFO * 10, RULES).first_error


def test_first_error_is_above_the_wall_of_tracebacks() -> None:
    """Not "failed to start", not the last traceback: the line that states the reason."""
    log = CONSEQUENCE.format(cause="(EngineCore) ERROR 10-24 [core.py:866] ValueError: the reason")
    assert "(EngineCore) ERROR 10-24 [core.py:866] ValueError: the reason" == (
        diagnose(log, RULES).first_error
    )


def test_first_error_is_not_a_consequence() -> None:
    """A line that points elsewhere, and an error that was tried again, are passed over."""
    log = "RuntimeError: Engine core initialization failed. See root cause above.\n"
    log += "ERROR 10-24 Error retrieving file list, retrying 1 of 2\nERROR 10-24 the fan stopped\n"
    assert "ERROR 10-24 the fan stopped" == diagnose(log, RULES).first_error


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("token hf_" + "a1B2" * 8 + " used", "token [removed] used"),
        ("key nvapi-" + "Ab-_9" * 12, "key [removed]"),
        ("OPENAI sk-" + "abcd1234" * 5, "OPENAI [removed]"),
        ("Authorization: Bearer abc.def-ghi=", "Authorization: Bearer [removed]"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", "{'authorization': 'Basic [removed]'}"),
        ("got Bearer abcdefgh12345678 here", "got Bearer [removed] here"),
        ("HF_TOKEN=secret1 NGC_API_KEY='secret2'", "HF_TOKEN=[removed] NGC_API_KEY='[removed]'"),
        ('"NGC_API_KEY": "c2VjcmV0"', '"NGC_API_KEY": "[removed]"'),
        ("MY_SECRET: abc, DB_PASSWORD=x", "MY_SECRET: [removed], DB_PASSWORD=[removed]"),
        ("'api_key': ['token-abc123']", "'api_key': ['[removed]']"),
        ("vllm serve m --api-key s3cret --port 1", "vllm serve m --api-key [removed] --port 1"),
        ("https://me:pass@example.org/x", "https://me:[removed]@example.org/x"),
    ],
)
def test_secrets_are_removed(text: str, left: str) -> None:
    """Each kind of secret goes, and what names it stays."""
    assert left == redact(text)


@pytest.mark.parametrize(
    "text",
    [
        '--hf-overrides {"rope_theta": 1} hf_overrides=None hf_transfer',
        "max_tokens=300 num_speculative_tokens=2 eos_token_id=151645",
        "api_key=None HF_TOKEN=None",
        "error: unrecognized arguments: --api-key",
        "task-1234567890abcdef disk-usage ask-for-more-than-this",
        "Loading safetensors checkpoint shards: 44% Completed | 4/9",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Flags, counts and words that only look alike are left as they are."""
    assert text == redact(text)


def test_evidence_holds_no_secret_no_colour_and_is_short() -> None:
    """A secret on the very line is removed, and the line is cut around what was found."""
    line = f"HF_TOKEN=abcdef \x1b[31m{'x' * 900} it broke here {'y' * 900}"
    found = diagnose(f"before\n{line}\nafter", [as_rule()]).diagnoses[0]
    assert "it broke here" in found.evidence
    assert 400 >= len(found.evidence)
    shown = diagnose("HF_TOKEN=abcdef it \x1b[31mbroke\n", [as_rule(patterns=["HF_TOKEN="])])
    assert "HF_TOKEN=[removed] it broke" == shown.diagnoses[0].evidence


def test_values_are_redacted() -> None:
    """A value that a pattern captures is shown, so it is cleaned like a line."""
    found = diagnose("it broke: hf_" + "a" * 30, [as_rule(patterns=[r"it broke: (?P<v>\S+)"])])
    assert {"v": "[removed]"} == found.diagnoses[0].values


@settings(deadline=None)
@given(st.text(alphabet=string.ascii_letters + string.digits, min_size=16, max_size=80))
def test_no_hub_token_survives(secret: str) -> None:
    """Whatever stands around it, a Hugging Face token does not get through."""
    for text in (
        f"x hf_{secret} y",
        f"token=hf_{secret}",
        f"'hf_{secret}'",
        f"https://hf_{secret}@h",
    ):
        assert secret not in redact(text)


@settings(deadline=None)
@given(st.text(max_size=2000))
def test_any_text_can_be_asked_about(text: str) -> None:
    """No log makes it fail, and it never invents a line."""
    report = diagnose(text, RULES)
    assert all(found.id in {r.id for r in RULES} for found in report.diagnoses)


@pytest.mark.parametrize(
    ("filler", "megabytes"),
    [
        (INFO, 50),
        ('Free memory on device it says, "ExitCode": 137?\n', 30),
        ("a" * 5000 + "\n", 10),
        ("\rLoading 1%", 10),
        ("Error: x ", 10),
    ],
    ids=["log", "look_alikes", "long_lines", "progress_bar", "errors_without_line_ends"],
)
def test_a_huge_log_takes_seconds(filler: str, megabytes: int) -> None:
    """All rules over 50 MB, the cause at the end: seconds of CPU, and as little for odd logs."""
    log = filler * (megabytes * 1_000_000 // len(filler)) + "\n"
    start = time.process_time()
    found = ids(log + rule("wrong_architecture").example)
    assert "wrong_architecture" in found
    assert 5.0 > time.process_time() - start


def test_requires_and_unless() -> None:
    """A rule with a condition on the rest of the log applies only under it."""
    needs = as_rule(requires=["loading the drafter"])
    barred = as_rule(unless=["all is well"])
    assert () == diagnose("it broke", [needs]).diagnoses
    assert 1 == len(diagnose("loading the drafter\nit broke", [needs]).diagnoses)
    assert () == diagnose("it broke\nall is well", [barred]).diagnoses
    assert 1 == len(diagnose("it broke", [barred]).diagnoses)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(unclosed and long", "not a regular expression"),
        (r"\d+ things broke", "plain text"),
        ("ab", "plain text"),
        ("it broke (a+)+$", "repeat inside a repeat"),
        ("it broke|it fell", "two patterns"),
    ],
)
def test_a_pattern_that_cannot_be_searched_for_quickly_is_refused(pattern: str, says: str) -> None:
    """The catalog says why, and what to write instead."""
    with pytest.raises(ValidationError, match=re.escape(says)):
        as_rule(patterns=[pattern])


@pytest.mark.parametrize(
    ("pattern", "lead"),
    [
        (r"exec format error", "exec format error"),
        (r"oom \(137\) now \d+", "oom (137) now "),
        (r"foobar?baz", "fooba"),
        (r"To serve( at least)? one", "To serve"),
        (r"abc\d", "abc"),
    ],
)
def test_the_plain_text_that_a_pattern_starts_with(pattern: str, lead: str) -> None:
    """Escapes are resolved, and a character that may be missing is not part of it."""
    assert lead == lead_of(pattern)


@pytest.mark.parametrize("wanted", RULES, ids=lambda r: r.id)
def test_texts_name_only_what_a_pattern_can_give(wanted: DiagnosisRule) -> None:
    """No name in braces is a typing error, and a text without any value still says something."""
    given_ = {name for p in wanted.patterns for name in re.compile(p).groupindex}
    known = given_ | ({"max_fraction"} if "free_gib" in given_ else set())
    always = set.intersection(*({*re.compile(p).groupindex} for p in wanted.patterns))
    for text in (wanted.cause, wanted.remedy):
        assert known >= set(re.findall(r"\{(\w+)\}", text))
        assert "{" not in filled(text, dict.fromkeys(always, "1"))


def test_sentences_with_unknown_values_are_left_out() -> None:
    """What the line did not give is not talked about."""
    assert "It broke." == filled("It broke. It is {size} long.", {})
    assert "It broke. It is 3 long." == filled("It broke. It is {size} long.", {"size": "3"})
