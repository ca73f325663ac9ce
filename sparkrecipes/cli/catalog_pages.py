"""Answers of commands that bring something into the catalog, as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from sparkrecipes.cli.printing import QuietConsole, console, page, plain

if TYPE_CHECKING:
    from sparkrecipes.schema.contribution import Contribution, Review
    from sparkrecipes.schema.findings import ValidationReport
    from sparkrecipes.schema.importing import ImportedRecipe
    from sparkrecipes.schema.lock import PinReport


@page("ImportedRecipe")
def _(answer: ImportedRecipe) -> None:
    """Print the recipe on stdout, and what is to be known of it on stderr."""
    if answer.saved_to is None:
        plain(answer.text.rstrip("\n"))
    err = QuietConsole(stderr=True, highlight=False, soft_wrap=True)

    def say(text: str) -> None:
        err.print(escape(text), soft_wrap=True)

    say(f"{answer.file}: read as {answer.format}, told by {answer.recognised_by}")
    if answer.same_as:
        say(f"it serves what the catalog's {answer.same_as} does: that recipe is written")
    if answer.not_carried:
        say("not carried (line: what: why):")
        for one in answer.not_carried:
            say(f"  {one.line}: {one.what}: {one.why}")
    for problem in answer.problems:
        if problem.level == "error":
            say(f"to mend, line {problem.line}: {problem.message}")
    hints = sum(problem.level == "hint" for problem in answer.problems)
    say(f"{'valid' if answer.valid else 'not valid yet'}, {hints} hints")
    if answer.saved_to:
        say(f"saved in {answer.saved_to}")
    say(f"Next: {answer.next}")


@page("ValidationReport")
def _(answer: ValidationReport) -> None:
    for changed in answer.changes:
        plain(changed.diff.rstrip("\n"))
        word = "changed" if changed.written else "would change"
        for one in changed.changes:
            plain(f"{changed.file}:{one.line}: {word} ({one.code}): {one.message}")
    for p in answer.problems:
        plain(f"{p.file}:{p.line}:{p.column}: {p.level}: {p.message}")
        if p.repair:
            plain(f"    {p.repair}")
    word = "valid" if answer.valid else "not valid"
    hints = sum(p.level == "hint" for p in answer.problems)
    errors = len(answer.problems) - hints
    console.print(f"{answer.files} files, {errors} errors, {hints} hints: {word}")
    fixable = sum(p.fixable for p in answer.problems)
    if fixable and not answer.changes:
        console.print(f"{fixable} can be put right: sparkrecipes validate --fix --dry-run PATH")


@page("Contribution")
def _(answer: Contribution) -> None:
    plain(answer.text.rstrip("\n"))
    plain(answer.recipe_diff.rstrip("\n"))
    word = "written" if answer.written else "would write"
    plain(f"{word}: {answer.evidence_file}")
    plain(f"{word}: {answer.recipe_file} (evidence: {answer.reference})")
    plain(f"Next: {answer.next}")


@page("Review")
def _(answer: Review) -> None:
    for kind, word in _REVIEW_WORDS.items():
        of_kind = [item for item in answer.items if item.kind == kind]
        if of_kind:
            console.print(f"[bold]{word}[/]")
        for item in of_kind:
            plain(f"  {item.file}:{item.line}: {item.what}{_old_new(item.old, item.new)}")
            plain(f"      look: {item.look}")
    for problem in answer.problems:
        if problem.level == "error":
            plain(f"{problem.file}:{problem.line}:{problem.column}: error: {problem.message}")
            plain(f"    {problem.repair}")
    errors = sum(problem.level == "error" for problem in answer.problems)
    hints = len(answer.problems) - errors
    plain(
        f"{len(answer.files)} files differ from {answer.base} ({answer.commit[:12]}): "
        f"{len(answer.items)} things to look at, {errors} errors, {hints} hints of validate"
    )


_REVIEW_WORDS = {
    "image": "Images",
    "flag": "Flags",
    "env": "Environment",
    "code": "Code from outside the image",
    "setting": "Settings",
    "figure": "Figures",
    "fact": "Facts",
    "licence": "Licences",
    "claim": "Claims",
    "outside": "Outside of the catalog",
}


def _old_new(old: str | None, new: str | None) -> str:
    """Return what stood there and what stands there now."""
    if old is None and new is None:
        return ""
    if old is None or new is None:
        return f": {new if old is None else old}"
    return f": {old} -> {new}"


@page("PinReport")
def _(answer: PinReport) -> None:
    """Print what each name is pinned to, and what it is now."""
    for pin in answer.pins:
        plain(f"{pin.state:9} {pin.what} {pin.name}: {pin.message}")
        if pin.pinned:
            plain(f"          pinned {pin.pinned}")
        if pin.now and pin.now != pin.pinned:
            plain(f"          now    {pin.now}")
        if pin.repair and pin.state not in ("same", "pinned"):
            plain(f"          {pin.repair}")
    if answer.lock:
        plain(f"lock: {answer.lock}")
    plain(f"{answer.recipe_id}: {answer.state}")
    plain(f"Next: {answer.next}")
