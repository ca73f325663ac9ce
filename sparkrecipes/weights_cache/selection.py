"""Which files of a repository an engine reads.

Repositories often hold the same weights several times, in the formats of several programs. An
engine reads one of them; the others can double or triple a download.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

ENGINE_FORMATS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
"""Weight formats that an engine can load, the preferred one first.

Source: vLLM, model_executor/model_loader/default_loader.py (load format auto: safetensors, then
bin, then pt); https://docs.vllm.ai/en/latest/features/quantization/gguf.html.
"""

OTHER_FORMATS = frozenset(
    (
        ".ckpt",
        ".h5",
        ".mlmodel",
        ".msgpack",
        ".nemo",
        ".npz",
        ".onnx",
        ".onnx_data",
        ".ot",
        ".tflite",
    )
)
"""Weights of other programs (TensorFlow, Flax, ONNX, Core ML, NeMo, rust-bert)."""

NOT_READ = frozenset(
    (
        ".gif",
        ".ipynb",
        ".jpeg",
        ".jpg",
        ".mov",
        ".mp3",
        ".mp4",
        ".pdf",
        ".png",
        ".svg",
        ".wav",
        ".webp",
    )
)
"""Pictures, recordings and notebooks of the model page."""

OTHER_FOLDERS = frozenset(
    ("coreml", "flax", "gguf", "metal", "onnx", "openvino", "original", "runs", "tf", "tflite")
)
"""Folders that hold a second copy for another program, or logs of the training.

Example: openai/gpt-oss-120b holds the same weights at its root, in ``original/`` and in
``metal/``.
"""

TRAINING_STATE = ("optimizer", "rng_state", "scheduler", "training_args")
"""Names that a trainer leaves beside the weights; no engine reads them."""

CONSOLIDATED = "consolidated"
"""Mistral's own single-file layout, beside the same weights in Hugging Face's layout."""


def wanted_files(names: Iterable[str]) -> tuple[str, ...]:
    """Choose the files that an engine reads, in the order given.

    One weight format is kept: safetensors where there are any, else the next one that an engine
    loads. A second copy in another layout (``original/``, ``consolidated*.safetensors`` beside
    ``model*.safetensors``), weights of other programs, training state and pictures are left out.
    Everything else is kept: configuration, tokenizer, templates, code and the licence.

    Args:
        names: Paths inside the repository, with ``/`` between folders.
    """
    readable = [name for name in names if not_for_others(PurePosixPath(name))]
    kept = next((f for f in ENGINE_FORMATS if any(format_of(n) == f for n in readable)), None)
    twice = any(format_of(n) == ".safetensors" and not consolidated(n) for n in readable)
    return tuple(
        name
        for name in readable
        if format_of(name) in (None, kept) and not (twice and consolidated(name))
    )


def not_for_others(path: PurePosixPath) -> bool:
    """Say whether a path is not plainly of another program, of the trainer or of the page."""
    folders = {part.lower() for part in path.parts[:-1]}
    if folders & OTHER_FOLDERS or any(f.startswith(("checkpoint-", ".")) for f in folders):
        return False
    name, ending = path.name.lower(), path.suffix.lower()
    if name.startswith(".git") or ending in OTHER_FORMATS or ending in NOT_READ:
        return False
    return not (ending in ENGINE_FORMATS and name.startswith(TRAINING_STATE))


def format_of(name: str) -> str | None:
    """Name the weight format of a file or of its index; None where it holds no weights."""
    path = PurePosixPath(name.lower().removesuffix(".index.json"))
    return path.suffix if path.suffix in ENGINE_FORMATS else None


def consolidated(name: str) -> bool:
    """Say whether a file is of Mistral's own layout."""
    return PurePosixPath(name).name.lower().startswith(CONSOLIDATED)


def holds_weights(names: Iterable[str]) -> bool:
    """Say whether any of the files holds weights that an engine loads."""
    return any(format_of(n) and not n.endswith(".index.json") for n in names)
