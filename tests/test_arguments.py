"""Wrong arguments of an operation or a command are misuse that says which one and what it takes."""

import inspect
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

import sparkrecipes as sr
from sparkrecipes import operations
from sparkrecipes.cli.main import main
from sparkrecipes.errors import Misuse
from sparkrecipes.operations.arguments import checked, hints_of

RECIPE = "qwen3.6-35b-a3b-nvfp4-vllm-mtp"


@pytest.mark.parametrize("name", operations.__all__)
def test_every_argument_of_every_operation_is_checked(name: str) -> None:
    """Each in turn gets an object that no operation takes; nothing is done before that is said."""
    operation = getattr(sr, name)
    signature = inspect.signature(operation)
    needed = {
        key: RECIPE
        for key, parameter in signature.parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    for key in signature.parameters:
        with pytest.raises(Misuse) as caught:
            operation(**needed | {key: object()})
        assert ("bad_arguments", 2) == (caught.value.code, caught.value.exit_code)
        # A needed one that is not text (a list of paths) may be found first.
        assert f" of {name} takes " in caught.value.message
        assert f"see help(sparkrecipes.{name})" == caught.value.repair


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("get_recipe", {"recipe": None}, "recipe of get_recipe takes text, not None"),
        (
            "recommend",
            {"use_case": "agents", "users": "4"},
            "takes a whole number or None, not '4'",
        ),
        ("render_command", {"recipe": RECIPE, "users": True}, "not True (bool)"),
        ("estimate_memory", {"recipe_or_model": RECIPE, "context_tokens": 1.5}, "not 1.5 (float)"),
        ("validate_recipe", {"paths": "catalog"}, "takes a list of a path or text, not 'catalog'"),
        ("write_report", {"format": "pdf"}, "'markdown' or 'html'"),
    ],
)
def test_a_wrong_type_is_named_with_what_is_wanted(
    name: str, given: dict[str, Any], words: str
) -> None:
    """Nothing is converted: a text is no number, and a lone text no list."""
    with pytest.raises(Misuse) as caught:
        getattr(sr, name)(**given)
    assert words in caught.value.message


def test_an_unknown_keyword_stays_an_error_of_python() -> None:
    """It is a mistake in a program, which its author sees as any other."""
    with pytest.raises(TypeError):
        sr.list_recipes(catalogue=None)


class Wanted(BaseModel):
    """A type that an operation makes of its arguments."""

    users: int = Field(ge=1)


def made_up(users: int, kind: Literal["a", "b"] = "a", path: Path | None = None) -> Wanted:
    """Stand for an operation."""
    return Wanted(users=users if kind == "a" else -7)


def test_a_value_that_a_type_refuses_inside_is_misuse_too() -> None:
    """Where it is an argument's; a fault of ours stays one."""
    operation = checked(made_up)
    assert 3 == operation(3).users
    with pytest.raises(Misuse, match=r"users of made_up: 0 .int.: input should be greater"):
        operation(0)
    with pytest.raises(ValidationError):
        operation(3, "b")
    assert ["users", "kind", "path"] == list(hints_of(made_up))


CHOICES = [
    (["round", "--method", "octobre"], ["--method", "'octobre'", "october, school"], "october"),
    (["command", RECIPE, "--format", "podman"], ["--format", "'podman'", "docker"], None),
    (["fit", RECIPE, "--kv-cache-dtype", "fp9"], ["--kv-cache-dtype", "'fp9'", "bfloat16"], "fp8"),
    (["recomend", "agents"], ["no command 'recomend'"], "recommend"),
]


@pytest.mark.parametrize(("argv", "words", "near"), CHOICES)
def test_a_wrong_choice_names_option_value_and_choices(
    capsys: pytest.CaptureFixture[str], argv: list[str], words: list[str], near: str | None
) -> None:
    """And the nearest, where one is near."""
    assert 2 == main(argv)
    said = capsys.readouterr().err
    assert [] == [word for word in words if word not in said]
    assert (near is None) or f"did you mean {near}" in said
