"""The arguments of every command; nothing is imported here that a help page does not need."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn

import sparkrecipes
from sparkrecipes.cli.agent_parser import add_agent_commands
from sparkrecipes.cli.catalog_parser import (
    contribute_arguments,
    import_arguments,
    pin_arguments,
    review_arguments,
)
from sparkrecipes.cli.report_parser import report_arguments
from sparkrecipes.errors import Misuse, nearest

EPILOG = """\
A walk:  sparkrecipes recommend agents      which recipe, and why
         sparkrecipes check RECIPE          can it run here
         sparkrecipes install RECIPE        download, launch, measure, compare
         sparkrecipes rehearse agents       the same walk without a Spark

exit codes: 0 done or yes, 1 no, 2 misuse, 3 unknown, 130 interrupted
"""


_CHOICE = re.compile(r"(?:argument (.*?): )?invalid choice: (.*) \(choose from (.*)\)", re.DOTALL)
"""How argparse refuses a value: which option, what was given, what there is."""


def wrong_choice(found: re.Match[str]) -> tuple[str, str]:
    """Return what is wrong with a choice, and the nearest one."""
    option, given = found[1] or "", found[2].strip("'\"")
    choices = [word.strip("'\" ") for word in found[3].split(",")]
    close = nearest(given, choices)
    near = f"did you mean {' or '.join(close)}? " if close else ""
    if option in ("", "COMMAND"):
        return f"there is no command {given!r}", near
    return f"{option}: {given!r} is no choice; there is {', '.join(choices)}", near


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are our errors: with a repair, and as JSON where asked."""

    def error(self, message: str) -> NoReturn:
        """Raise a misuse that names the nearest word."""
        near = ""
        if found := _CHOICE.fullmatch(message):
            message, near = wrong_choice(found)
        elif found := re.search(r"unrecognized arguments: (.*)", message):
            options = [o for action in self._actions for o in action.option_strings]
            close = nearest(found[1].split("=")[0].split()[0], options)
            near = f"did you mean {' or '.join(close)}? " if close else ""
        raise Misuse(message, code="bad_arguments", repair=f"{near}run: {self.prog} --help")


def build_parser() -> Parser:
    """Build the parser of the whole command line."""
    common = common_options()
    parser = Parser(
        prog="sparkrecipes",
        description=str(sparkrecipes.__doc__).splitlines()[0],
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=sparkrecipes.__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, help: str, *parts: Callable[[Parser], Any]) -> None:
        sub = commands.add_parser(name, help=help, description=help, parents=[common])
        for part in parts:
            part(sub)

    add_reading(add)
    add_acting(add)
    add_agent_commands(add)
    return parser


def common_options() -> Parser:
    """Options that every command takes, before and after its name."""
    common = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--json", action="store_true", help="one JSON object on stdout")
    common.add_argument("--catalog", metavar="DIR", help="another catalog")
    common.add_argument("--machine", metavar="FILE", help="another target machine")
    common.add_argument("--offline", action="store_true", help="ask no network")
    return common


Add = Callable[..., None]


def add_reading(add: Add) -> None:
    """Add the commands that change nothing."""
    add("list", "recipes with the figures that people choose by", everything)
    add("show", "one recipe in full, with its sources", shown, evidence)
    add("recommend", "a pick for a use case or a sentence, and why", words, sizes, wishes)
    add("validate", "check recipe or catalog files", paths, mending)
    add("import", "a recipe of another tool, as a strict one", import_arguments)
    add("review", "what a reviewer must look at in a change of the catalog", review_arguments)
    add("probe", "what this machine is, and what is free on it now")
    add(
        "fit",
        "does it fit, for your context and users",
        subject,
        sizes,
        kv_cache,
        engine_settings,
        views,
    )
    add("image", "does an image run on this platform: ask its registry", reference)
    add("check", "everything that could stop a recipe here", recipe, sizes, port)
    add(
        "command",
        "the exact command that starts a recipe",
        recipe,
        sizes,
        port,
        bind,
        fraction,
        format_,
    )
    add("report", "a measured round beside the published figures", report_arguments)
    add("diagnose", "known causes in a log file, - for stdin, or a server", log)
    add("status", "the containers that we started")
    add("logs", "the last log lines of a recipe's container", recipe, lines)


def add_acting(add: Add) -> None:
    """Add the commands that act or take long."""
    add("pin", "keep what tag and branch stand for now; later runs obey it", recipe, pin_arguments)
    add("download", "fetch the weights, target and drafter, and verify them", recipe, verify)
    add("launch", "start a recipe's container", recipe, sizes, port, bind, force, fraction)
    add("wait", "wait until it answers a real completion", recipe, timeout)
    add("round", "measure an endpoint with the standard round", endpoint)
    add("contribute", "make evidence of a measured round, in a clone", contribute_arguments)
    add("stop", "stop and remove a recipe's container, and nothing else", recipe)
    add("install", "the whole walk, to a proven endpoint", recipe, sizes, port, bind, force, full)
    add("rehearse", "the whole walk without a Spark", recipe_or_words, sizes, speed, full)


def everything(parser: Parser) -> None:
    """Recipes that the standard round did not measure too."""
    parser.add_argument(
        "--all",
        action="store_true",
        dest="everything",
        help="those too that are known from other publications alone",
    )


def recipe(parser: Parser) -> None:
    """A recipe's id or file."""
    parser.add_argument("recipe", metavar="RECIPE", help="a recipe's id or file")


def shown(parser: Parser) -> None:
    """A recipe; with --evidence a model will do, or nothing."""
    help = (
        "a recipe's id or file; with --evidence also a model's id, or nothing: every contradiction"
    )
    parser.add_argument("recipe", metavar="RECIPE", nargs="?", help=help)


def evidence(parser: Parser) -> None:
    """Everything published of its model."""
    parser.add_argument(
        "--evidence",
        action="store_true",
        help="all that is published of its model side by side, and where it contradicts",
    )


def recipe_or_words(parser: Parser) -> None:
    """A recipe or a use case."""
    parser.add_argument(
        "recipe", metavar="RECIPE_OR_USE_CASE", nargs="+", help="a recipe, or words: agents"
    )


def words(parser: Parser) -> None:
    """A use case or a sentence; more words need no quotes."""
    parser.add_argument(
        "words", metavar="USE_CASE", nargs="+", help="agents, programación, or a sentence"
    )


def subject(parser: Parser) -> None:
    """What is sized."""
    parser.add_argument(
        "subject",
        metavar="RECIPE_OR_MODEL",
        help="a recipe, a model, model-quant, or a Hugging Face repository",
    )


def paths(parser: Parser) -> None:
    """Files or folders."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help="files or folders")


def mending(parser: Parser) -> None:
    """Whether files are put right."""
    parser.add_argument(
        "--fix", action="store_true", help="put right what is mechanical, and show the diff"
    )
    parser.add_argument("--dry-run", action="store_true", help="with --fix: change nothing")


def reference(parser: Parser) -> None:
    """An image reference."""
    parser.add_argument(
        "ref",
        metavar="REF",
        help="an image, e.g. vllm/vllm-openai:v0.31.0, or a recipe for its own",
    )


def sizes(parser: Parser) -> None:
    """Context and users."""
    parser.add_argument("--context", type=count, metavar="TOKENS", help="longest sequence")
    parser.add_argument("--users", type=count, metavar="N", help="sequences at once")


def wishes(parser: Parser) -> None:
    """What a recommendation must hold, beside context and users."""
    group = parser.add_argument_group("what must hold (a sentence may say it too)")
    add = group.add_argument
    add("--min-speed", type=float, dest="min_tok_s_per_user", metavar="TOK_S", help="each user")
    add("--reads", type=listed, dest="modalities", metavar="A,B", help="image, audio, video, tools")
    add("--languages", type=listed, metavar="A,B", help="ISO 639-1 codes: es,en")
    add("--free-now", type=float, dest="free_now_gb", metavar="GB", help="memory free now")
    add("--leave-free", type=float, dest="leave_free_gb", metavar="GB", help="memory to leave free")
    add("--licence", type=listed, dest="licences", metavar="A,B", help="e.g. apache-2.0,mit")
    add("--engine", type=listed, dest="engines", metavar="A,B", help="e.g. vllm,sglang")
    add("--answer-in", choices=["en", "es"], dest="language", help="default: as the question")
    more = parser.add_argument_group("how much is shown")
    more.add_argument("--all", action="store_true", dest="everything", help="every alternative")
    more.add_argument("--limit", type=count, metavar="N", help="alternatives at most")


def listed(text: str) -> tuple[str, ...]:
    """Read a list of words, parted by commas."""
    return tuple(word.strip().lower() for word in text.split(",") if word.strip())


def fraction(parser: Parser) -> None:
    """The engine's share of the memory."""
    parser.add_argument(
        "--gpu-memory-utilization",
        type=float,
        metavar="F",
        help="share of the memory, e.g. 0.4; default: the recipe's, or what the settings need",
    )


def kv_cache(parser: Parser) -> None:
    """The KV cache's type."""
    parser.add_argument(
        "--kv-cache-dtype",
        choices=["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla"],
        help="default: the recipe's, or auto",
    )


def engine_settings(parser: Parser) -> None:
    """What else decides the engine's cache."""
    group = parser.add_argument_group("the engine's own figures")
    group.add_argument(
        "--available-kv-gib",
        type=float,
        metavar="GIB",
        help="'Available KV cache memory' of the log: answers what the log prints",
    )
    group.add_argument("--engine-version", metavar="V", help="a release of vLLM, e.g. 0.27.1")
    group.add_argument("--speculative", metavar="METHOD:K", help="e.g. mtp:3, dflash:15, none")
    group.add_argument(
        "--prefix-caching",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="on unless said, or as the recipe says",
    )
    group.add_argument("--max-num-batched-tokens", type=count, metavar="TOKENS")
    group.add_argument(
        "--mamba-ssm-cache-dtype",
        choices=["float32", "bfloat16", "float16"],
        help="type of recurrent states; default: the model's",
    )


def views(parser: Parser) -> None:
    """More than the one answer."""
    parser.add_argument("--explain", action="store_true", help="each number's rule and source")
    parser.add_argument("--grid", action="store_true", help="a table of users and contexts")


FIT_PARTS = (kv_cache, engine_settings, views)


def port(parser: Parser) -> None:
    """The host's port."""
    parser.add_argument("--port", type=port_number, default=8000, help="port on this host")


def bind(parser: Parser) -> None:
    """The address the port is published on."""
    parser.add_argument(
        "--bind", metavar="ADDRESS", default="127.0.0.1", help="default 127.0.0.1: this host only"
    )


def format_(parser: Parser) -> None:
    """How the command is written."""
    parser.add_argument(
        "--format",
        choices=["docker", "compose", "systemd", "sparkrun", "kubernetes"],
        default="docker",
    )
    parser.add_argument(
        "--nodes",
        type=count,
        metavar="N",
        help="machines, for sparkrun (default 2) and kubernetes (default 1)",
    )


def force(parser: Parser) -> None:
    """Act although a check says no."""
    parser.add_argument("--force", action="store_true", help="start although a check says no")


def verify(parser: Parser) -> None:
    """Whether hashes are compared."""
    parser.add_argument(
        "--verify", action="store_true", help="compare every file's hash too: reads all of it"
    )


def full(parser: Parser) -> None:
    """The long round."""
    parser.add_argument("--full", action="store_true", help="the whole round, not the quick one")


def speed(parser: Parser) -> None:
    """How fast the rehearsal plays."""
    parser.add_argument("--speed", type=float, default=1.0, help="1.0 plays the published timing")


def timeout(parser: Parser) -> None:
    """A deadline."""
    parser.add_argument("--timeout", type=seconds, metavar="S", help="default: the recipe's")


def lines(parser: Parser) -> None:
    """How many log lines."""
    parser.add_argument("--lines", type=count, default=50, metavar="N")


def log(parser: Parser) -> None:
    """A log or a server."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="a log file, or - for stdin")
    parser.add_argument("--server", metavar="RECIPE", help="a container of ours instead")


def endpoint(parser: Parser) -> None:
    """What the round measures, and how much of it."""
    parser.add_argument(
        "recipe", metavar="RECIPE", nargs="?", help="a recipe that runs here, or to compare with"
    )
    parser.add_argument("--base-url", metavar="URL", help="an endpoint, with or without /v1")
    parser.add_argument(
        "--model", metavar="NAME", help="the name to ask for; default: the only one served"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats, under two minutes")
    parser.add_argument(
        "--method",
        choices=["october", "school"],
        default="october",
        help="october (default): the standard round; school: ladders of users, three scenarios",
    )
    parser.add_argument(
        "--only",
        choices=["single", "concurrent", "long", "stability"],
        help="one part alone: a warm-up and three requests or rounds",
    )
    parser.add_argument(
        "--users",
        type=ladder,
        metavar="N[,N...]",
        help="users at once; several make a curve: 1,2,4,8,16; default: as measured, or 4",
    )
    parser.add_argument(
        "--sustained-minutes",
        type=float,
        default=15.0,
        metavar="MIN",
        help="length of the last part of the full round; default 15, 0 leaves it out",
    )


def count(text: str) -> int:
    """Read a whole number of at least 1; ``128k`` is 131072."""
    found = re.fullmatch(r"(\d{1,9})([kK]?)", text.replace(",", "").replace("_", ""))
    value = int(found[1]) * (1024 if found[2] else 1) if found else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 999,999,999")
    return value


def seconds(text: str) -> float:
    """Read a time above 0, in seconds."""
    found = re.fullmatch(r"\d{1,9}(\.\d+)?", text)
    value = float(text) if found else 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds above 0, of at most 9 digits"
        )
    return value


def ladder(text: str) -> list[int]:
    """Read one number of users or several."""
    return [count(part) for part in text.split(",")]


def port_number(text: str) -> int:
    """Read a port."""
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (1 to 65535)")
    return value
