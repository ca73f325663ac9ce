"""The written pages in a real browser: offline, light, dark, on a phone and on paper."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkrecipes.catalog import open_catalog
from sparkrecipes.reports import compare, compare_pair, html, html_of_pair
from tests.real.conftest import part
from tests.support.chromium import Page, browser
from tests.support.full_round import full_round, spread, step

pytestmark = pytest.mark.real

RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"
WIDTHS = {"phone": 360, "tablet": 768, "desk": 1280}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of the browser that Debian ships."""
    with browser(part("chromium.sh"), tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A round with everything, one with nothing, one of the school, and two compared, as files."""
    folder = tmp_path_factory.mktemp("pages")
    catalog = open_catalog()
    row = catalog.october_row(catalog.recipe(RECIPE))
    full = full_round(warnings=("published_blind: the published method does not see this",))
    bare = full_round(
        single=None, concurrent=None, users_curve=(), varied=(), sustained=None, acceptance=None
    )
    newer = full_round(
        server__engine_version="0.32.0",
        single__decode_tok_s=spread(112.0),
        concurrent__aggregate_tok_s=spread(231.0),
    )
    ladder = [(kind, n) for kind in ("chat", "qa", "rag") for n in (1, 2, 4, 8, 16)]
    school = full_round(
        method="school",
        concurrent=None,
        users_curve=tuple(step(n, 90.0 * n**0.5, kind) for kind, n in ladder),
    )
    written = {
        "school": html(compare(school, row, recipe_id=RECIPE), school),
        "full": html(compare(full, row, recipe_id=RECIPE), full),
        "bare": html(compare(bare, None, recipe_id=None), bare),
        "pair": html_of_pair(compare_pair(full, newer), full, newer),
    }
    for name, text in written.items():
        (folder / f"{name}.html").write_text(text)
    return {name: (folder / f"{name}.html").as_uri() for name in written}


DRAWN = """[...document.querySelectorAll('svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  const marks = svg.querySelectorAll('rect.bar, circle.dot').length;
  const out = [...svg.querySelectorAll('text, rect, circle, polyline')].filter(part => {
    const p = part.getBoundingClientRect();
    return p.left < box.left - 1 || p.right > box.right + 1 || p.top < box.top - 1
      || p.bottom > box.bottom + 1;
  }).map(part => part.textContent || part.tagName);
  return {title: svg.getAttribute('aria-label'), width: box.width, height: box.height, marks, out};
})"""

CROSSED = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')]
    .map(text => [text.textContent, text.getBoundingClientRect()]);
  const crossed = [];
  texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([two, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 4) crossed.push(one + ' / ' + two);
  }));
  return crossed;
})"""

SMALLEST = """Math.min(...[...document.querySelectorAll('body *')]
  .filter(e => e.childNodes.length && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
    && !['STYLE', 'TITLE', 'title'].includes(e.tagName))
  .map(e => {
    const svg = e.closest('svg');
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    return parseFloat(getComputedStyle(e).fontSize) * scale;
  }))"""

CONTRAST = """(() => {
  const light = rgb => {
    const [r, g, b] = rgb.match(/[\\d.]+/g).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const ratio = colour => {
    const own = light(colour);
    return (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
  };
  const found = [...document.querySelectorAll('h1, h2, h3, p, td, th, span, li, svg text')]
    .filter(e => !e.closest('.simulated'))
    .map(e => [ratio(e.closest('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color),
               e.textContent.slice(0, 30)]);
  return found.sort((a, b) => a[0] - b[0])[0];
})()"""


@pytest.mark.parametrize("name", ["full", "bare", "pair"])
def test_it_opens_from_a_file_and_asks_for_nothing_else(
    page: Page, files: dict[str, str], name: str
) -> None:
    """One request, its own file; the browser has nothing to complain of."""
    page.open(files[name])
    assert [files[name]] == page.requested()
    assert [] == page.complaints()
    assert page.run("document.querySelector('h1').textContent.length") > 3


@pytest.mark.parametrize(("name", "plots"), [("full", 6), ("bare", 0), ("pair", 13), ("school", 6)])
def test_the_plots_are_drawn_and_nothing_sticks_out(
    page: Page, files: dict[str, str], name: str, plots: int
) -> None:
    """Each with its marks, every part inside its picture, no two texts over each other."""
    page.open(files[name])
    drawn = page.run(DRAWN)
    assert plots == len(drawn)
    assert all(one["height"] > 40 and one["marks"] for one in drawn), drawn
    assert [] == [one for one in drawn if one["out"]]
    assert [] == page.run(CROSSED)


@pytest.mark.parametrize("name", ["full", "pair"])
@pytest.mark.parametrize("device", WIDTHS)
def test_no_width_makes_the_page_itself_scroll_sideways(
    page: Page, files: dict[str, str], name: str, device: str
) -> None:
    """Tables and plots scroll by themselves; text stays readable, at 10 px or more."""
    page.open(files[name], width=WIDTHS[device], height=800)
    wide = page.run("document.documentElement.scrollWidth")
    assert wide <= WIDTHS[device]
    assert page.run(SMALLEST) >= 10


@pytest.mark.parametrize("name", ["full", "pair"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_readable(
    page: Page, files: dict[str, str], name: str, scheme: str, tmp_path: Path
) -> None:
    """Every text stands out by 4.5 to 1, as WCAG 2 wants of normal text; the grounds differ."""
    page.open(files[name], scheme=scheme)
    ratio, text = page.run(CONTRAST)
    assert ratio >= 4.5, (ratio, text)
    ground = pixel(page.screenshot(tmp_path / "page.png"))
    assert (ground > 200) == (scheme == "light")


def pixel(png: bytes) -> int:
    """The red of the first pixel of a PNG of 8 bits a channel."""
    data = b"".join(
        png[at + 8 : at + 8 + size] for at, size, kind in pieces(png) if kind == b"IDAT"
    )
    return zlib.decompress(data)[1]


def pieces(png: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Where each piece of a PNG begins, its size and its kind."""
    at = 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        yield at, size, kind
        at += size + 12


@pytest.mark.parametrize("name", ["full", "bare", "pair"])
def test_it_prints(page: Page, files: dict[str, str], name: str) -> None:
    """A PDF of some pages; on paper it is light, and nothing is cut off at the side."""
    page.open(files[name], scheme="dark", medium="print", width=700)
    assert "rgb(255, 255, 255)" == page.run("getComputedStyle(document.body).backgroundColor")
    assert page.run("document.documentElement.scrollWidth") <= 700
    paper = page.pdf()
    assert paper.startswith(b"%PDF-")
    pages = [int(n) for n in re.findall(rb"/Type /Pages\n?.*?/Count (\d+)", paper, re.DOTALL)]
    assert 1 <= max(pages) <= 6


def test_hostile_texts_run_nothing(page: Page, tmp_path: Path) -> None:
    """A model's name with a script and an image asks for nothing and runs nothing."""
    name = "<script>document.title='run'</script><img src=http://192.0.2.1/x onerror=alert(1)>"
    round_ = full_round(recipe_id=None, server__model=name)
    file = tmp_path / "page.html"
    file.write_text(html(compare(round_, None, recipe_id=None), round_))
    page.open(file.as_uri())
    assert [file.as_uri()] == page.requested()
    assert "run" != page.run("document.title")
    assert name == page.run("document.querySelector('h1').textContent")
