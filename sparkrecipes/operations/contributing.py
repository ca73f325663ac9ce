"""Contributing: a round of one's own becomes evidence, and a change is laid out for review."""

from __future__ import annotations

import difflib
from pathlib import Path

from sparkrecipes import contributions
from sparkrecipes.catalog import Catalog, InvalidFile, validate
from sparkrecipes.catalog.checking import problem
from sparkrecipes.catalog.inspecting import faults_in
from sparkrecipes.contributions import NotContributable
from sparkrecipes.engine_flags import holds_secret
from sparkrecipes.errors import CatalogError, Misuse
from sparkrecipes.operations.results import load_round
from sparkrecipes.operations.workspace import Place, open_catalog_of
from sparkrecipes.schema.contribution import Contribution, Review
from sparkrecipes.schema.evidence import Figures
from sparkrecipes.schema.findings import Problem
from sparkrecipes.schema.recipe import Recipe
from sparkrecipes.schema.round import Round

ANONYMOUS = "a user of sparkrecipes"


def contribute_round(
    round_file: Path | str | Round,
    *,
    recipe: str | None = None,
    publisher: str = ANONYMOUS,
    dry_run: bool = False,
    catalog: Catalog | Place = None,
) -> Contribution:
    """Write a measured round into the catalog as evidence, and point its recipe at it.

    Taken are figures, dates and machine facts; no address, path, host name or message of the
    round. Two files of a checkout change: a new one in ``evidence/``, one line of the recipe.

    Args:
        round_file: A round that ``run_round`` saved, or the round.
        recipe: The recipe that was served; None: the round's own.
        publisher: Who contributes it, as it shall be printed.
        dry_run: Only say what would be written.
        catalog: The catalog to write into: that of a checkout.

    Raises:
        NotContributable: The round is simulated, of another method, measured from elsewhere, or
            shows nothing of the recipe.
        Misuse: No such round or recipe, or the catalog is the installed one.
        CatalogError: A file cannot be written.
    """
    round_ = round_file if isinstance(round_file, Round) else load_round(Path(round_file))
    opened = open_catalog_of(catalog)
    chosen = require_recipe(opened, round_, recipe)
    name = str((round_.machine or {}).get("id", ""))
    tree = contributions.evidence_of(
        round_, chosen, opened.machines.get(name), publisher=publisher.strip() or ANONYMOUS
    )
    text = contributions.evidence_text(tree)
    path = free_name(opened, f"contributed-{tree['date']}-{chosen.id}"[:95], text)
    require_valid(text, path, opened)
    target = opened.root / "recipes" / f"{chosen.id}.yaml"
    before = target.read_text(encoding="utf-8")
    reference = f"{path.stem}#{chosen.id}"
    after = contributions.pointing_at(before, reference)
    if not dry_run:
        require_checkout(opened)
        write_both(path, text, target, after)
    names = (f"a/{target.name}", f"b/{target.name}")
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    return Contribution(
        evidence_file=str(path),
        reference=reference,
        recipe_id=chosen.id,
        recipe_file=str(target),
        figures=Figures.model_validate(tree["rows"][0]["figures"], strict=False),
        text=text,
        recipe_diff="\n".join(diff),
        written=not dry_run,
        next="sparkrecipes review main" if not dry_run else "the same without --dry-run",
    )


def require_recipe(opened: Catalog, round_: Round, recipe: str | None) -> Recipe:
    """Return the recipe that a round measured.

    Raises:
        Misuse: Neither the round nor the caller names one.
        UnknownId: The catalog has none of that id.
    """
    wanted = recipe or round_.recipe_id
    if wanted is None:
        message = "the round does not say which recipe was served"
        raise Misuse(message, repair="name it: sparkrecipes contribute ROUND.json --recipe RECIPE")
    chosen = opened.recipe(wanted)
    if chosen.id not in opened.recipes:
        message = f"{wanted} is not in the catalog {opened.root}"
        raise Misuse(message, repair="contribute the recipe first: copy it into recipes/")
    return chosen


def free_name(opened: Catalog, stem: str, text: str) -> Path:
    """Return the path of a new evidence file.

    Raises:
        Misuse: The same round is in the catalog already.
    """
    folder = opened.root / "evidence"
    for count in range(1, 100):
        path = folder / f"{stem}{f'-{count}' if count > 1 else ''}.yaml"
        if not path.exists():
            return path
        if path.read_text(encoding="utf-8") == text:
            message = f"this round is in the catalog already: {path}"
            raise Misuse(message, repair="contribute another one")
    raise Misuse(f"{folder} holds 99 files of {stem}", repair="contribute them in fewer rounds")


def require_checkout(opened: Catalog) -> None:
    """Refuse to write into the catalog that was installed with the package.

    Raises:
        Misuse: With how to name one's own.
    """
    if opened.root.parent.name == "_data":
        message = "the installed catalog is not written to"
        repair = "name that of your clone: --catalog CLONE/catalog"
        raise Misuse(message, repair=repair, code="installed_catalog")


def require_valid(text: str, path: Path, opened: Catalog) -> None:
    """Hold an evidence file to the catalog's own rules before it is written.

    Raises:
        InvalidFile: With what is wrong.
        NotContributable: It holds what looks like a secret.
    """
    if holds_secret(text):
        raise NotContributable("the file would hold what looks like an access token")
    document, faults = faults_in(text, path, opened)
    errors = [problem(document, fault) for fault in faults if fault.level == "error"]
    if errors:
        raise InvalidFile(tuple(errors))


def write_both(evidence: Path, text: str, recipe: Path, after: str) -> None:
    """Write the evidence, then the recipe's line.

    Raises:
        CatalogError: Neither is left changed where one cannot be written.
    """
    try:
        with evidence.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        try:
            recipe.write_text(after, encoding="utf-8", newline="\n")
        except OSError:
            evidence.unlink()
            raise
    except OSError as error:
        message = f"{error.filename or evidence} cannot be written: {error.strerror}"
        raise CatalogError(message, repair="check its permissions", code="unwritable") from None


def review_changes(
    base: str = "main", *, folder: Path | str = ".", catalog: Catalog | Place = None
) -> Review:
    """Say what a reviewer must look at in a change: the working tree against a branch.

    Nothing is run, fetched or written, so that the change of a stranger can be asked about.

    Args:
        base: A branch or commit; compared is with what both have in common.
        folder: A folder of the clone.
        catalog: The clone's catalog; None: its folder ``catalog``.

    Raises:
        NoRepository: There is no clone, or git does not know the commit.
        Misuse: The clone has no catalog.
    """
    repository = contributions.Repository.around(Path(folder).absolute())
    commit = repository.base(base)
    opened = open_catalog_of(catalog if catalog is not None else repository.top / "catalog")
    root = opened.root.resolve()
    top = repository.top.resolve()
    inside = root.relative_to(top).as_posix() if root.is_relative_to(top) else ""
    changed = repository.changed(commit)
    items = [item for one in changed for item in contributions.items_of(one, inside, opened)]
    report = validate([opened.root], opened)
    changes = {one.path for one in changed}
    problems = [_within(one, top) for one in report.problems]
    return Review(
        base=base,
        commit=commit,
        files=tuple(one.path for one in changed),
        items=tuple(items),
        problems=tuple(p for p in problems if p.level == "error" or p.file in changes),
        valid=report.valid,
    )


def _within(problem: Problem, top: Path) -> Problem:
    """Name a problem's file by its place in the repository."""
    path = Path(problem.file).absolute().resolve()
    inside = path.relative_to(top).as_posix() if path.is_relative_to(top) else problem.file
    return problem.model_copy(update={"file": inside})
