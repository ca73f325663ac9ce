"""Where the catalog's files are, and what was made of them before.

Nothing here needs pydantic or YAML: ``list`` answers from the cache without importing either,
as long as no file of the catalog changed. A cache that is missing, unreadable, broken or from
another version is ignored; one that cannot be written is left out.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path

import sparkrecipes
from sparkrecipes.errors import CatalogError, Misuse, SparkRecipesError

KINDS = (
    "recipes",
    "models",
    "engines",
    "evidence",
    "use_cases",
    "diagnoses",
    "machines",
    "locks",
)
"""Folders of a catalog; the name of a file in them is its id."""
ESSENTIAL = ("recipes", "models", "engines")
"""Folders without which a folder is no catalog."""
DOES_NOT_RUN = "does_not_run.yaml"
SUFFIX = ".yaml"
LOCK_SUFFIX = ".lock.yaml"
"""Ending of a lock that lies beside a recipe's file; it is no recipe."""

_MARK = b"\0"
"""Between the parts of the cache file: no path, number or JSON text holds it."""

_CODE = ("catalog", "schema", "memory", "speed")
"""Folders of ours whose code makes that answer."""

_LISTED = ("recipes", "models", "evidence", "engines", "machines")
"""Folders that the list answer is made of, with what does not run."""


def data_root() -> Path:
    """Return the folder that holds ``catalog/`` and ``agent_prompts/``.

    It is inside the package where that was installed from a wheel, else the checkout.

    Raises:
        CatalogError: Neither is there: the installation is broken.
    """
    package = Path(__file__).parent
    for root in (package / "_data", package.parent):
        if (root / "catalog" / "recipes").is_dir():
            return root
    raise CatalogError(
        f"the catalog is not where it was installed ({package / '_data'})",
        repair="reinstall sparkrecipes, or name a catalog with --catalog DIR",
        code="no_catalog",
    )


def catalog_root(path: Path | None = None) -> Path:
    """Return the folder of the catalog to use, as an absolute path.

    Args:
        path: The folder asked for; None: ``SPARKRECIPES_CATALOG``, else the shipped one.

    Raises:
        Misuse: There is no such folder, or it lacks one that a catalog must have.
    """
    named = path or os.environ.get("SPARKRECIPES_CATALOG") or None
    if named is None:
        return data_root() / "catalog"
    root = Path(named).absolute()
    if not is_catalog(root):
        raise Misuse(
            f"{named} is not a catalog, which has the folders {', '.join(ESSENTIAL)}",
            repair="name the folder that holds them",
            code="no_catalog",
        )
    return root


def user_folder(root: Path) -> Path | None:
    """Return the user's own catalog folder beside the shipped one; it need not be there.

    A catalog that was named replaces both, so beside that there is none. It is the place that
    platformdirs gives, worked out here because ``list`` has to stay quick.

    Args:
        root: The catalog that is used.
    """
    if root != data_root() / "catalog":
        return None
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not base.is_absolute():
        base = Path(os.path.expanduser("~")) / ".local" / "share"  # noqa: PTH111 (never raises)
    return base / "sparkrecipes" / "catalog" if base.is_absolute() else None


def is_catalog(folder: Path) -> bool:
    """Tell whether a folder has the shape of a catalog; one that cannot be read has not."""
    return all(os.path.isdir(folder / kind) for kind in ESSENTIAL)  # noqa: PTH112


def files(root: Path, kind: str) -> dict[str, Path]:
    """Return the files of one kind by id, sorted; none where the folder is missing.

    Raises:
        CatalogError: The folder is there, but cannot be read.
    """
    try:
        names = sorted(os.listdir(root / kind))  # noqa: PTH208 (half the time of Path.iterdir)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        message = f"{root / kind} cannot be read: {error.strerror}"
        raise CatalogError(message, repair="check its permissions", code="unreadable") from None
    return {
        name.removesuffix(SUFFIX): root / kind / name
        for name in names
        if name.endswith(SUFFIX) and not name.startswith(".") and not name.endswith(LOCK_SUFFIX)
    }


def cached_list_json(path: Path | None = None, *, everything: bool = False) -> bytes | None:
    """Return the ``list`` answer of a catalog as JSON, where no file changed since it was made.

    Args:
        path: The catalog, as for ``catalog_root``.
        everything: True for the answer with all recipes (``list --all``).

    Returns:
        The JSON of a ``RecipeList``, indented; None where there is none or it is out of date.
    """
    try:
        root = catalog_root(path)
        kept = _cache_file().read_bytes()
        state = catalog_state(root)
    except (OSError, SparkRecipesError):
        return None
    seen, _, rest = kept.partition(_MARK)
    check, _, payload = rest.partition(_MARK)
    if seen != state or check != _checksum(payload):
        return None
    shown, _, whole = payload.partition(_MARK)
    return whole if everything else shown


def store_list_json(state: bytes, shown: bytes, whole: bytes) -> None:
    """Keep both ``list`` answers for ``cached_list_json``; do nothing where that cannot be done.

    One answer is kept: that of the catalog asked last.

    Args:
        state: What ``catalog_state`` was before the catalog was read.
        shown: The JSON of its ``RecipeList`` without ``--all``, indented.
        whole: The same with all recipes.
    """
    payload = _MARK.join((shown, whole))
    target = _cache_file()
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(_MARK.join((state, _checksum(payload), payload)))
        partial.replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()


def _cache_file() -> Path:
    """Return the cache file; where there is no home, a place that cannot be written."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111 (never raises)
    if not base.is_absolute():
        base = Path(os.devnull)
    return base / "sparkrecipes" / "list.json"


def _checksum(payload: bytes) -> bytes:
    return b"%08x" % zlib.crc32(payload)


def user_files(folder: Path) -> list[Path]:
    """List what the list answer is made of in the user's folder, as far as it can be read."""
    found = [folder / DOES_NOT_RUN, *(folder / kind for kind in (*_LISTED, "engines"))]
    for kind in (*_LISTED, "engines"):
        with contextlib.suppress(CatalogError):
            found += files(folder, kind).values()
    return found


def catalog_state(root: Path) -> bytes:
    """Return what changes whenever the list answer may change: the tool and the files."""
    package = Path(__file__).parent
    code = [p for folder in _CODE for p in sorted((package / folder).glob("*.py"))]
    data = [path for kind in _LISTED for path in files(root, kind).values()]
    own = user_folder(root)
    lines = [sparkrecipes.__version__, str(root), str(own)]
    data += user_files(own) if own else []
    for path in (*code, *data, root / DOES_NOT_RUN):
        try:
            seen = path.stat()
        except OSError:
            lines.append(f"{path} missing")
        else:
            lines.append(f"{path} {seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns}")
    return "\n".join(lines).encode("utf-8", "surrogateescape")
