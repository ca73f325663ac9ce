"""Our plan of the KV cache beside vLLM's own: its model classes, its functions, block by block."""

import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkrecipes.hub_models import model_from_config
from sparkrecipes.memory import EngineSettings, FitRequest, engine_request
from sparkrecipes.memory.cache_groups import CachePlan, group_layers
from sparkrecipes.memory.cache_specs import FIXED_BLOCKS, CacheSettings, CacheSpec
from sparkrecipes.memory.engine_log import engine_kv
from sparkrecipes.memory.engine_rules import rules_for
from sparkrecipes.memory.sequence_cost import sequence_cost
from sparkrecipes.schema.model import DrafterModel, Model
from tests.support import model_configs as configs
from tests.support.models import SPARK, engine

pytestmark = pytest.mark.real

PART = Path(__file__).parent / "parts" / "vllm_cache.py"
VERSION = "0.32.0"
AVAILABLE = 40 * 2**30 + 4711
COMPARED = (
    "block_size",
    "num_blocks",
    "blocks_per_request",
    "kv_cache_tokens",
    "max_concurrency",
)


def asked(config: configs.Config, context: int, **other: Any) -> dict[str, Any]:
    """Ask vLLM about a model."""
    return {
        "config": config,
        "context_tokens": context,
        "kv_cache_dtype": "bfloat16",
        "prefix_caching": True,
        "max_num_batched_tokens": 8192,
        "available_bytes": AVAILABLE,
        **other,
    }


def drafting(method: str, tokens: int) -> dict[str, Any]:
    """Ask for speculation."""
    return {"method": method, "num_speculative_tokens": tokens}


NEXT = configs.QWEN3_NEXT_80B
NEXT_MTP = {**NEXT, "num_nextn_predict_layers": 1}
MODELS = {
    "full": asked(configs.LLAMA_8B, 131072),
    "full, fp8": asked(configs.LLAMA_8B, 100_001, kv_cache_dtype="fp8"),
    "full, eagle3": asked(
        configs.LLAMA_8B,
        131072,
        draft=configs.EAGLE3_OF_LLAMA,
        speculative=drafting("eagle3", 3),
    ),
    "window in all layers": asked(configs.MISTRAL_7B, 32768),
    "window and full": asked(configs.GPT_OSS_20B, 131072),
    "window and full, small batches": asked(
        configs.GPT_OSS_20B, 65536, max_num_batched_tokens=2048
    ),
    "window and full, eagle3": asked(
        configs.GPT_OSS_20B,
        131072,
        draft=configs.EAGLE3_OF_GPT_OSS,
        speculative=drafting("eagle3", 3),
    ),
    "windows in a pattern that leaves a rest": asked(configs.GEMMA_3_4B, 131072),
    "two head sizes": asked(configs.GEMMA_4_26B, 262144),
    "delta net, prefix caching": asked(NEXT, 262144),
    "delta net, no prefix caching": asked(NEXT, 262144, prefix_caching=False),
    "delta net, fp8": asked(NEXT, 200_000, kv_cache_dtype="fp8"),
    "delta net, mtp": asked(NEXT_MTP, 262144, speculative=drafting("mtp", 3)),
    "delta net, mtp, no prefix caching": asked(
        NEXT_MTP, 131072, speculative=drafting("mtp", 2), prefix_caching=False
    ),
    "delta net, dflash": asked(
        NEXT, 262144, draft=configs.DFLASH_OF_QWEN, speculative=drafting("dflash", 15)
    ),
    "delta net, dflash with windows": asked(
        NEXT, 262144, draft=configs.DFLASH_WITH_WINDOWS, speculative=drafting("dflash", 7)
    ),
    "delta net, dflash with windows, FLASHINFER": asked(
        NEXT,
        262144,
        draft=configs.DFLASH_WITH_WINDOWS,
        speculative=drafting("dflash", 7),
        kernel_blocks=list(FIXED_BLOCKS),
    ),
    "window and full, FLASHINFER": asked(
        configs.GPT_OSS_20B, 131072, kernel_blocks=list(FIXED_BLOCKS)
    ),
    "mamba-2, prefix caching": asked(configs.NEMOTRON_3_NANO, 262144),
    "mamba-2, no prefix caching": asked(configs.NEMOTRON_3_NANO, 262144, prefix_caching=False),
    "mamba-2, fp8": asked(configs.NEMOTRON_3_NANO, 131072, kv_cache_dtype="fp8"),
    "mamba-2 of another family": asked(configs.GRANITE_4_SMALL, 131072),
    "latent": asked(configs.DEEPSEEK_V2_LITE, 163840),
}


def described(config: configs.Config, drafters: tuple[DrafterModel, ...] = ()) -> Model:
    """Describe a configuration as a repository's."""
    found = model_from_config(
        "owner/some-model", config, weights_bytes=2**30, params_total=10**9, source="a test"
    )
    return found.model_copy(update={"drafters": drafters})


def request_of(question: dict[str, Any]) -> FitRequest:
    """Ask ourselves what vLLM is asked."""
    drafters: tuple[DrafterModel, ...] = ()
    told = question.get("speculative")
    if "draft" in question:
        layers = described(question["draft"]).layers
        drafters = (
            DrafterModel(
                repo="owner/drafter", method=told["method"], layers=layers, sources={"layers": "a"}
            ),
        )
    found = engine_request(
        described(question["config"], drafters),
        engine("vllm"),
        context_tokens=question["context_tokens"],
        kv_cache_dtype=question["kv_cache_dtype"],
        settings=EngineSettings(
            engine_version=VERSION,
            speculative=f"{told['method']}:{told['num_speculative_tokens']}" if told else None,
            prefix_caching=question["prefix_caching"],
            max_num_batched_tokens=question["max_num_batched_tokens"],
        ),
    )
    more = ("--attention-backend=FLASHINFER",) if "kernel_blocks" in question else ()
    return replace(found, flags=(*found.flags, *more))


def stack(number: int) -> dict[str, Any]:
    """Draw a stack of layers that no model has: two to five kinds, any counts and shapes."""
    draw = random.Random(number)
    block = draw.choice((16, 32, 1056, 2096))
    mode, drafts = draw.choice(("none", "align")), draw.choice((0, 3, 15))
    width = draw.choice((1, 2))

    def attention(kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "count": draw.randint(1, 48),
            "heads": draw.choice((1, 2, 3, 4, 8)),
            "head_dim": draw.choice((64, 128, 192, 256)),
            "width": width,
            "window": draw.choice((128, 512, 4096)),
            "block_tokens": block,
        }

    layers = [attention(draw.choice(("full", "sliding"))) for _ in range(draw.randint(1, 4))]
    if block > 32:
        first = layers[0]
        page = block * first["heads"] * 2 * first["head_dim"] * width
        layers += [
            {
                "kind": "state",
                "count": draw.randint(1, 48),
                "state_bytes": page - draw.randint(0, 4096),
                "page_bytes": page,
                "block_tokens": block,
                "mode": mode,
                "drafts": drafts,
            }
        ]
    return {
        "layers": layers,
        "mode": mode,
        "drafts": drafts,
        "layout": "LBNHC",
        "context_tokens": draw.choice((4096, 65536, 131_071, 262_144)),
        "in_flight_tokens": draw.choice((4096, 16384)),
        "available_bytes": draw.randint(2**36, 2**39),
    }


def indexed_stack(number: int) -> dict[str, Any]:
    """Draw a stack like Qwen3.8-Flash-Next's: attention with indexers, states, a convolution.

    Its layout puts a block's pages of several sizes side by side.
    """
    draw = random.Random(number)
    full, drafts, width = draw.randint(2, 24), draw.choice((0, 2, 3, 5)), draw.choice((1, 2))
    mode, ratio, block = draw.choice(("none", "align")), 4, draw.choice((1600, 3136, 3184))
    page = block * 2 * 2 * 256 * width
    common = {"block_tokens": block, "mode": mode, "drafts": drafts, "page_bytes": page}
    one_head = {"heads": 1, "head_dim": 128, "width": 2}
    ring = ratio * -(-(ratio + drafts) // ratio)
    states = [
        {"kind": "state", "count": 3 * full, "state_bytes": page - 64, **common},
        {"kind": "state", "count": 1, "state_bytes": 184_320, "replicated": True, **common},
    ]
    return {
        "layers": [
            {
                "kind": "full",
                "count": full,
                "heads": 2,
                "head_dim": 256,
                "width": width,
                "block_tokens": block,
            },
            {"kind": "keys", "count": full, "ratio": ratio, "block_tokens": block, **one_head},
            {"kind": "ring", "count": full, "block_tokens": ring, **one_head},
            *states[: draw.randint(1, 2)],
        ],
        "mode": mode,
        "drafts": drafts,
        "layout": "BLHNC",
        "context_tokens": draw.choice((32_768, 131_071, 262_144)),
        "in_flight_tokens": 16384,
        "available_bytes": draw.randint(2**34, 2**37),
    }


STACKS = {f"stack {number}": stack(number) for number in range(400)} | {
    f"indexed stack {number}": indexed_stack(number) for number in range(100)
}


def our_specs(question: dict[str, Any]) -> dict[CacheSpec, int]:
    """Write a stack's layers as our own specs, by the words that the product uses."""
    specs: dict[CacheSpec, int] = {}
    for layer in question["layers"]:
        spec = our_spec(layer)
        specs[spec] = specs.get(spec, 0) + layer["count"]
    return specs


def our_spec(layer: dict[str, Any]) -> CacheSpec:
    """Write one layer as our own spec."""
    kind, block = layer["kind"], layer["block_tokens"]
    if kind == "state":
        held = {"none": 1, "align": 2}[layer["mode"]] + layer["drafts"]
        name = "short_conv" if layer.get("replicated") else "mamba2"
        shape = (name, layer["state_bytes"])
        return CacheSpec("state", shape, block, layer["page_bytes"], held_blocks=held)
    row = layer["heads"] * layer["head_dim"] * layer["width"]
    if kind == "keys":
        shape = ("keys", layer["head_dim"], layer["ratio"])
        return CacheSpec("full", shape, block, block // layer["ratio"] * row)
    if kind == "ring":
        return CacheSpec("ring", ("ring", layer["head_dim"]), block, block * row, held_blocks=1)
    both = (layer["heads"], layer["head_dim"], layer["head_dim"])
    if kind == "sliding":
        return CacheSpec("sliding", both, block, 2 * block * row, window_tokens=layer["window"])
    return CacheSpec("full", both, block, 2 * block * row)


def our_stack(question: dict[str, Any]) -> CachePlan:
    """Group a stack's layers as we do."""
    settings = CacheSettings(
        rules=rules_for(VERSION),
        kv_cache_dtype="bfloat16",
        ssm_width=4,
        mode=question["mode"],
        speculative_tokens=question["drafts"],
        in_flight_tokens=question["in_flight_tokens"],
    )
    groups = group_layers(our_specs(question))
    return CachePlan(
        block_tokens=16,
        bytes_per_block=max(group.page_bytes for group in groups),
        attention=tuple(g for g in groups if g.spec.kind != "state"),
        states=tuple(g for g in groups if g.spec.kind == "state"),
        settings=settings,
    )


@pytest.fixture(scope="module")
def engine_answers(vllm_env: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Ask the real vLLM everything in one process."""
    folder = tmp_path_factory.mktemp("cache")
    questions, answers = folder / "questions.json", folder / "answers.json"
    given = {"plain": MODELS["full"], "models": MODELS, "stacks": STACKS}
    questions.write_text(json.dumps(given))
    done = subprocess.run(
        [str(vllm_env / "bin" / "python"), str(PART), str(questions), str(answers)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(answers.read_text())
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_laid_out_as_the_engine_does(name: str, engine_answers: dict[str, Any]) -> None:
    """From the same config.json: block, blocks, blocks a request, tokens and concurrency."""
    question, theirs = MODELS[name], engine_answers[name]
    plan = sequence_cost(request_of(question), SPARK.mem_total_bytes).high
    ours = engine_kv(plan, question["available_bytes"], question["context_tokens"])
    assert "error" not in theirs
    assert theirs == {key: getattr(ours, key) for key in COMPARED}


def test_any_stack_of_layers_is_grouped_as_the_engine_does(
    engine_answers: dict[str, Any],
) -> None:
    """500 stacks that no model has: the same blocks, tokens and concurrency for each."""
    wrong = {}
    for name, question in STACKS.items():
        ours = engine_kv(
            our_stack(question), question["available_bytes"], question["context_tokens"]
        )
        found = {key: getattr(ours, key) for key in COMPARED[1:]}
        theirs = {key: engine_answers[name][key] for key in COMPARED[1:]}
        if theirs != found:
            wrong[name] = (question, theirs, found)
    assert {} == wrong
