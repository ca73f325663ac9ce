"""The house stays small: sizes, docstrings and what an import costs."""

import ast
import statistics
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "sparkrecipes"
HEAVY = ("mcp", "huggingface_hub", "rich", "httpx2", "httpx", "pydantic", "yaml", "platformdirs")


def functions() -> list[tuple[str, int]]:
    """List every function of the package with its number of lines."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{path.relative_to(PACKAGE)}:{node.name}"
                found.append((name, (node.end_lineno or 0) - node.lineno + 1))
    return found


def code_lines(name_and_size: tuple[str, int]) -> int:
    """Return the size of a function."""
    return name_and_size[1]


def test_no_function_is_longer_than_fifty_lines_of_code() -> None:
    """Docstrings are not counted: an operation documents each of its arguments."""
    too_long = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            docs = ast.get_docstring(node, clean=False)
            lines = (node.end_lineno or 0) - node.lineno + 1
            lines -= len(docs.splitlines()) if docs else 0
            if lines > 50:
                too_long.append(f"{path.relative_to(PACKAGE)}:{node.name} {lines}")
    assert [] == too_long


def test_the_median_function_is_short() -> None:
    """Half of all functions have at most 14 lines, docstring included."""
    assert statistics.median(map(code_lines, functions())) <= 14


def test_no_module_is_long() -> None:
    """Only the round's client, one copyable file, may pass 450 lines."""
    long = {
        path.name: n
        for path in PACKAGE.rglob("*.py")
        if (n := len(path.read_text().splitlines())) > 450
    }
    assert set(long) <= {"standard_round.py"}


def test_importing_the_package_loads_nothing_heavy() -> None:
    """`import sparkrecipes` costs no HTTP client, Hub client, terminal library or types."""
    code = f"import sys, sparkrecipes; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == out.stdout.strip()


def test_reading_commands_load_no_client() -> None:
    """`recommend` and `fit` load neither the Hub client, an HTTP client, nor mcp."""
    heavy = [m for m in HEAVY if m not in ("pydantic", "yaml", "rich", "platformdirs")]
    code = (
        "import sys; from sparkrecipes.cli import main; "
        "main(['recommend', 'agents', '--json']); "
        "main(['fit', 'llama-3.3-70b-instruct-nvfp4', '--json']); "
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == out.stderr.strip().splitlines()[-1]


def test_the_client_file_runs_by_itself(tmp_path: Path) -> None:
    """The round's client can be copied to a machine that has only Python."""
    copy = tmp_path / "standard_round.py"
    copy.write_bytes((PACKAGE / "standard_round.py").read_bytes())
    out = subprocess.run(
        [sys.executable, "-I", "-S", str(copy), "--help"], capture_output=True, text=True
    )
    assert (0, "") == (out.returncode, out.stderr)
