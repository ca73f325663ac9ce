"""Make a tiny Qwen3 with random weights: enough for a real engine, 0.7 MB on disk.

Run by the Python of the vLLM environment: ``python tiny_model.py FOLDER``. Its answers are noise,
but its tokenizer, its chat template and everything on the wire are real. The weights come from a
fixed seed, so that two machines make the same model.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

WORDS = """
The quick brown fox jumps over the lazy dog and tells the story of a stream of tokens that a server
sends to its clients one after the other until the answer is done. A client counts them, notes when
the first one came and when the last one went, and asks again, for a single figure proves little.
Four clients together find out how much the machine can carry while each of them waits a bit longer.
"""
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
EMBEDDING_STD = 0.1
HEAD_STD = 0.1
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """Train a byte-level BPE: 256 bytes, the special tokens and 139 merges."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([WORDS] * 4, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def is_wordlike(text: str) -> bool:
    """Take tokens of several letters: those of real text have about four bytes."""
    return len(text) > 2 and text.isascii() and text.strip().isalpha()


def model(words: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Build two layers of hidden size 128 from a fixed seed, whose answers look like words.

    Random weights alone repeat one token for ever. Here the head leads from each token of letters
    to another one, round a long ring, and the layers add noise: a greedy answer varies, comes
    round again (so that an n-gram drafter has something to find) and does not end before its limit.
    """
    torch.manual_seed(20261001)
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    made = Qwen3ForCausalLM(config)
    texts = [words.decode([token]) for token in range(len(words))]
    ring = torch.tensor([t for t, text in enumerate(texts) if is_wordlike(text)])
    ring = ring[torch.randperm(len(ring))]
    with torch.no_grad():
        embedding = made.model.embed_tokens.weight.normal_(0.0, EMBEDDING_STD)
        made.lm_head.weight.zero_()
        made.lm_head.weight[ring.roll(-1)] = embedding[ring] / EMBEDDING_STD * HEAD_STD
    return made.to(torch.bfloat16)


def main(folder: Path) -> None:
    """Write model and tokenizer into ``folder``, readable for whoever a container runs as."""
    words = tokenizer()
    words.save_pretrained(folder)
    model(words).save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
