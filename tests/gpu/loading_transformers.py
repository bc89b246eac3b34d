"""Loads checkpoints into models of transformers with the lines of docs/how-to/load-a-model.md, and
compares every tensor and the result with those of `from_pretrained`. Takes an empty folder.

    python loading_transformers.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import transformers

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "load-a-model.md"
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
SIZES: dict[str, Any] = {"vocab_size": 1024, "bos_token_id": 1, "eos_token_id": 2}
LLAMA: dict[str, Any] = {
    **SIZES,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
}


def configurations() -> dict[str, Any]:
    """Tied weights, buffers that no checkpoint has, experts that transformers puts together."""
    return {
        "llama": transformers.LlamaConfig(**LLAMA, dtype="bfloat16"),
        "llama, tied": transformers.LlamaConfig(**LLAMA, tie_word_embeddings=True),
        "gpt2": transformers.GPT2Config(**SIZES, n_embd=256, n_layer=2, n_head=4),
        "mixtral": transformers.MixtralConfig(
            **LLAMA, num_key_value_heads=2, num_local_experts=4, dtype="bfloat16"
        ),
        "qwen3": transformers.Qwen3Config(
            **LLAMA, num_key_value_heads=2, head_dim=64, dtype="bfloat16"
        ),
    }


def lines_of_the_page() -> str:
    """The program of the page that names transformers."""
    programs = PAGE.read_text().split("```python\n")[1:]
    (found,) = [text.split("```")[0] for text in programs if "import transformers" in text]
    return found


def check(name: str, config: Any, folder: Path) -> None:
    torch.manual_seed(1)
    model_class = transformers.AutoModelForCausalLM
    model_class.from_config(config).save_pretrained(folder, max_shard_size="4MB")
    expected = model_class.from_pretrained(folder, device_map=DEVICE)
    names: dict[str, Any] = {"folder": str(folder), "device": DEVICE}
    exec(lines_of_the_page(), names)
    model = names["model"]
    assert type(model) is type(expected), name
    state, other = model.state_dict(), expected.state_dict()
    assert list(state) == list(other), name
    for key, tensor in other.items():
        assert state[key].dtype == tensor.dtype, (name, key)
        assert state[key].device == tensor.device, (name, key)
        assert torch.equal(state[key], tensor), (name, key)
    for each in (*model.parameters(), *model.buffers()):
        assert not each.is_meta, name
    assert model.training == expected.training
    assert model.generation_config == expected.generation_config, name
    tokens = torch.arange(16, device=DEVICE)[None]
    with torch.inference_mode():
        assert torch.equal(model(tokens).logits, expected(tokens).logits), name
    print(f"{name}: {len(other)} tensors are equal")


def main(folder: Path) -> None:
    for number, (name, config) in enumerate(configurations().items()):
        check(name, config, folder / str(number))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
