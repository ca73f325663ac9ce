"""The page: everything in one file, every text escaped, and every plot or why there is none."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from sparkrecipes.cli import main
from sparkrecipes.cli.printing import print_answer
from sparkrecipes.reports import compare, html
from sparkrecipes.schema.round import Round
from tests.support.full_round import full_round, step

HOSTILE = "</style><script>alert(1)</script>\"'<img src=x onerror=alert(1)>\x00"
RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"


class Seen(HTMLParser):
    """Collects the tags and attributes of a page, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def page_of(round_: Round) -> str:
    """A page without published figures."""
    return html(compare(round_, None, recipe_id=round_.recipe_id), round_)


def test_a_full_round_has_all_plots_and_loads_nothing() -> None:
    """Six drawings (users, two of latency, minutes, two of acceptance), no link, no script."""
    page = page_of(full_round())
    seen = Seen(page)
    assert 6 == seen.tags.count("svg")
    assert not {"script", "link", "img", "iframe", "a"} & set(seen.tags)
    assert not {"src", "href", "style", "onload"} & seen.attributes
    assert "default-src 'none'" in page
    assert "prefers-color-scheme:dark" in page


def test_hostile_texts_stay_texts() -> None:
    """A model name, an engine, a scenario and a warning from a server add no element."""
    round_ = full_round(
        recipe_id=None,
        server__model=HOSTILE,
        server__engine=HOSTILE,
        concurrent__scenario=HOSTILE,
        warnings=(HOSTILE,),
    )
    seen = Seen(page_of(round_))
    assert not {"script", "img"} & set(seen.tags)
    assert "onerror" not in seen.attributes
    assert "\x00" not in page_of(round_)


def test_what_was_not_measured_is_said() -> None:
    """No drawing, and a sentence in the place of each."""
    nothing = full_round(
        single=None, concurrent=None, users_curve=(), varied=(), sustained=None, acceptance=None
    )
    page = page_of(nothing)
    assert "svg" not in Seen(page).tags
    assert 4 == page.count("Not measured")


def test_a_simulated_round_says_so() -> None:
    """A rehearsal is never taken for a machine."""
    assert "Simulated" in page_of(full_round(simulated=True))
    assert "Simulated" not in page_of(full_round())


def test_the_command_writes_markdown_and_a_page(tmp_path: Path, capsys: object) -> None:
    """`report --markdown` prints it, `report --html FILE` writes it; a bad folder is misuse."""
    saved = tmp_path / "round.json"
    saved.write_text(full_round().model_dump_json())
    page = tmp_path / "page.html"
    assert 0 == main(["report", str(saved), "--html", str(page)])
    assert page.read_text().startswith("<!doctype html>")
    assert [page, saved] == sorted(tmp_path.iterdir())
    assert 0 == main(["report", str(saved), "--markdown"])
    assert f"## {RECIPE}: matches" in capsys.readouterr().out  # type: ignore[attr-defined]
    assert 2 == main(["report", str(saved), "--html", str(tmp_path / "no" / "page.html")])
    assert 2 == main(["report", str(saved), str(saved), str(saved)])


def test_a_person_sees_what_each_part_of_a_round_gave(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every number of users once, sustained load, clock; one user is one user."""
    clock = {"median": 2405.0, "min": 2398.0, "max": 2411.0}
    gpu = {"samples": 9, "under_load": 7, "sm_clock_mhz": clock, "utilization_pct": None}
    curve = (step(1, 98.7), step(2, 150.0))
    print_answer(full_round(users_curve=curve, gpu=gpu | {"power_w": None, "temperature_c": None}))
    shown = capsys.readouterr().out
    for line in (
        "- 1 user: 98.7 tok/s",
        "- 2 users together: 150.0 tok/s",
        "- 4 users together: 240.0 tok/s",
        "- sustained 15 minutes: 208.0 tok/s, 0 of 620 requests failed, drift none",
        "- GPU clock 2,405.0 MHz (2,398.0 to 2,411.0)",
    ):
        assert line in shown
    assert 1 == shown.count("4 users together")
