"""What a reviewer must look at in a change of the catalog: pure functions of both texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sparkrecipes.catalog import Catalog
from sparkrecipes.catalog_files import KINDS, SUFFIX
from sparkrecipes.contributions.claims import claims
from sparkrecipes.contributions.differences import Leaf, leaves, shown
from sparkrecipes.contributions.repository import ChangedFile
from sparkrecipes.schema.contribution import ReviewItem
from sparkrecipes.strict_yaml import Document, StrictYamlError, parse

_OUTSIDE = (
    (".github/", "it runs in this repository's CI"),
    (".ci/", "it runs in this repository's CI"),
    ("sparkrecipes/", "it is code that users run"),
    ("tests/", "it says what holds: is a test weaker than before?"),
    ("pyproject.toml", "dependencies, and what is packed"),
    ("Makefile", "it runs on a developer's machine"),
    ("agent_prompts/", "agents are told this"),
)
_PLAIN = ("docs/", "README", "CHANGELOG", "CONTRIBUTING", "AGENTS", "LICENSE")
_CODE = ("--trust-remote-code", "plugin", "--middleware", "--logits-processors", "-cls", "template")
_SETTINGS = ("serving", "weights", "drafter", "engine", "engine_version", "speculative", "quant")


@dataclass(frozen=True)
class Pair:
    """A catalog file before and after.

    Attributes:
        path: Within the repository.
        old: Its tree at the base; None: it is new or could not be read.
        new: What it says now; None: it is gone or cannot be read.
        catalog: The catalog as it is now.
    """

    path: str
    old: dict[str, Any] | None
    new: Document | None
    catalog: Catalog

    @property
    def tree(self) -> dict[str, Any]:
        """The new tree; empty where there is none."""
        return self.new.tree if self.new and isinstance(self.new.tree, dict) else {}

    @property
    def id(self) -> str:
        """The file's name, which is the id."""
        return self.path.rpartition("/")[2].removesuffix(SUFFIX)

    def item(
        self, kind: Any, path: tuple[str | int, ...], what: str, look: str, **old_new: Any
    ) -> ReviewItem:
        """Return an item at a part of the file."""
        line = self.new.mark(path)[0] if self.new else 1
        return ReviewItem(kind=kind, file=self.path, line=line, what=what, look=look, **old_new)


def items_of(changed: ChangedFile, folder: str, catalog: Catalog) -> list[ReviewItem]:
    """Return what must be looked at in one changed file.

    Args:
        changed: The file.
        folder: The catalog's folder within the repository.
        catalog: The catalog as it is now.
    """
    inside = changed.path.removeprefix(f"{folder}/") if folder else changed.path
    kind = inside.split("/")[0]
    if (folder and inside == changed.path) or not changed.path.endswith(SUFFIX):
        return list(_outside(changed, inside != changed.path))
    if kind not in KINDS and inside.count("/"):
        return list(_outside(changed, True))
    if not changed.is_there:
        what = f"{kind.removesuffix('s')} is removed" if kind in KINDS else "it is removed"
        look = "does anything still point at it? a published figure must not vanish"
        return [ReviewItem(kind="fact", file=changed.path, what=what, look=look)]
    pair = Pair(changed.path, _tree(changed.old), _document(changed.new, changed.path), catalog)
    return [item for rule in RULES.get(kind, (_facts,)) for item in rule(pair)]


def _tree(text: str | None) -> dict[str, Any] | None:
    document = _document(text, "")
    return document.tree if document and isinstance(document.tree, dict) else None


def _document(text: str | None, name: str) -> Document | None:
    try:
        return parse(text, name=name) if text is not None else None
    except StrictYamlError:
        return None


def _outside(changed: ChangedFile, in_catalog: bool) -> Iterator[ReviewItem]:
    if changed.path.startswith(_PLAIN):
        return
    look = next((why for start, why in _OUTSIDE if changed.path.startswith(start)), "")
    if in_catalog:
        look = "generated or recorded: made by its own script?"
    state = "new" if not changed.was_there else "changed" if changed.is_there else "removed"
    yield ReviewItem(
        kind="outside",
        file=changed.path,
        what=f"{state}: not a file that a recipe or a round needs",
        look=look or "why does a contribution of data need it?",
    )


def _image(pair: Pair) -> Iterator[ReviewItem]:
    new, old = pair.tree.get("image") or {}, (pair.old or {}).get("image") or {}
    if not isinstance(new, dict) or new == old:
        return
    reference = str(new.get("reference"))
    first = reference.partition("/")[0]
    named = "/" in reference and any(mark in first for mark in ".:")
    registry = first if named else "docker.io"
    pinned = bool(new.get("digest")) or "@sha256:" in reference
    look = f"registry {registry}; {'pinned by digest' if pinned else 'not pinned by digest'}"
    if new.get("local_build"):
        look = "no registry has it: read how it is built, and from which commit"
    what = "another image" if old else "a new image"
    yield pair.item(
        "image", ("image", "reference"), what, look, old=_image_text(old), new=_image_text(new)
    )


def _image_text(image: dict[str, Any]) -> str | None:
    digest = f" {image['digest']}" if image.get("digest") else ""
    return f"{image['reference']}{digest}" if image.get("reference") else None


def _flags(pair: Pair) -> Iterator[ReviewItem]:
    new, old = pair.tree.get("flags") or [], (pair.old or {}).get("flags") or []
    known = set(old) if pair.old else _flags_of_others(pair)
    for at, flag in enumerate(new):
        code = any(word in str(flag) for word in _CODE)
        if flag in known and not (code and pair.old is None):
            continue
        look = "it lets code run that is not the image's" if code else "is it in a source?"
        what = "a new flag" if pair.old else "a flag that no other recipe has"
        yield pair.item("code" if code else "flag", ("flags", at), what, look, new=str(flag))
    for flag in old if pair.new else ():
        if flag not in new:
            look = "is the published figure still one of this configuration?"
            yield pair.item("flag", ("flags",), "a flag is gone", look, old=str(flag))


def _flags_of_others(pair: Pair) -> set[str]:
    others = (recipe for name, recipe in _readable(pair) if name != pair.id)
    return {flag for recipe in others for flag in recipe.flags}


def _readable(pair: Pair) -> Iterator[tuple[str, Any]]:
    from sparkrecipes.errors import CatalogError

    for name in pair.catalog.recipes:
        try:
            yield name, pair.catalog.recipes[name]
        except CatalogError:
            continue


def _env(pair: Pair) -> Iterator[ReviewItem]:
    new, old = pair.tree.get("env") or {}, (pair.old or {}).get("env") or {}
    for name, value in new.items() if isinstance(new, dict) else ():
        if old.get(name) != value:
            what = "another value" if name in old else "a new variable"
            look = "does the engine know it, and is it in a source?"
            was = str(old[name]) if name in old else None
            yield pair.item("env", ("env", name), f"{name}: {what}", look, old=was, new=str(value))
    for name in old.keys() - new.keys() if pair.new else ():
        look = "is the published figure still one of this configuration?"
        yield pair.item("env", ("env",), f"{name} is gone", look, old=str(old[name]))


def _settings(pair: Pair) -> Iterator[ReviewItem]:
    if pair.old is None:
        return
    for leaf in _changed_leaves(pair):
        if leaf.path[0] in _SETTINGS:
            look = "do its figures still belong to it?"
            yield pair.item("setting", leaf.place, leaf.name, look, old=leaf.old, new=leaf.new)


def _changed_leaves(pair: Pair) -> Iterator[Leaf]:
    before, after = leaves(pair.old or {}), leaves(pair.tree)
    for path in {**before, **after}:
        old, new = before.get(path), after.get(path)
        if (old and old.value) != (new and new.value) or (old is None) != (new is None):
            place = (new or old or Leaf(path, (), None)).place
            yield Leaf(path, place, None, shown(old), shown(new))


def _figures(pair: Pair) -> Iterator[ReviewItem]:
    for leaf in _changed_leaves(pair):
        if leaf.old is None and leaf.new is not None:
            continue
        if leaf.path[0] in ("rows", "single_stream", "ladders", "by_workload", "quantities") or (
            leaf.path[0] == "acceptance_by_position"
        ):
            what = leaf.name if leaf.new is not None else f"{leaf.name} is gone"
            look = "a published figure stays as it was published: what does the source say?"
            yield pair.item("figure", leaf.place, what, look, old=leaf.old, new=leaf.new)


def _new_rows(pair: Pair) -> Iterator[ReviewItem]:
    had = {row.get("id") for row in (pair.old or {}).get("rows") or () if isinstance(row, dict)}
    for at, row in enumerate(pair.tree.get("rows") or ()):
        if isinstance(row, dict) and row.get("id") not in had:
            seen = {k: v for k, v in (row.get("figures") or {}).items() if v is not None}
            text = ", ".join(f"{name} {value}" for name, value in seen.items())
            look = "are they the source's, in its unit, and can one run have given them all?"
            yield pair.item("figure", ("rows", at), f"a new row {row.get('id')}", look, new=text)


def _licence(pair: Pair) -> Iterator[ReviewItem]:
    new, old = pair.tree.get("licence"), (pair.old or {}).get("licence")
    if pair.old is None or new != old:
        look = "does it allow what people will do?" if new else "what does the model's page say?"
        what = "the licence of a new model" if pair.old is None else "another licence"
        yield pair.item(
            "licence", ("licence",), what, look, old=shown_text(old), new=shown_text(new)
        )


def shown_text(value: Any) -> str | None:
    """Return a value as an item shows it: what is not stated is said to be that."""
    return "not stated" if value is None else str(value)


def _facts(pair: Pair) -> Iterator[ReviewItem]:
    if pair.old is None:
        what = f"a new file of {pair.path.rpartition('/')[0] or 'the catalog'}"
        yield pair.item("fact", (), what, "has every fact its source?")
        return
    for leaf in _changed_leaves(pair):
        if leaf.path[0] not in ("licence", "title", "sources", "notes"):
            look = "is it in the source that the file names?"
            yield pair.item("fact", leaf.place, leaf.name, look, old=leaf.old, new=leaf.new)


def _claims(pair: Pair) -> Iterator[ReviewItem]:
    for path, what, look in claims(pair.id, pair.tree, pair.old, pair.catalog):
        yield pair.item("claim", path, what, look)


def _set_claims(pair: Pair) -> Iterator[ReviewItem]:
    sources = [str(one) for one in pair.tree.get("sources") or ()]
    if pair.old is None:
        rank, by = pair.tree.get("trust_rank"), pair.tree.get("publisher")
        look = "who measured it, on what, and what may they gain?"
        yield pair.item("claim", ("publisher",), f"figures of {by}, trust rank {rank}", look)
    if not any("://" in one for one in sources):
        look = "nobody else can look them up: does a reviewer believe them?"
        yield pair.item("claim", ("sources",), "figures without an address", look)


Rule = Callable[[Pair], Iterator[ReviewItem]]

RULES: dict[str, tuple[Rule, ...]] = {
    "recipes": (_image, _flags, _env, _settings, _claims),
    "evidence": (_figures, _new_rows, _set_claims),
    "models": (_licence, _facts),
}
"""By kind; others have their changed facts listed."""
