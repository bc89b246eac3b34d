"""Loads a small Llama by vLLM's own loader and by the load format of its plugin, on the host.

    python vllm_model.py FOLDER

The class of the model, its configuration, its weight loaders and the plugins are those of vLLM. Its
platform is that of CPUs, for which this process has a plugin.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import transformers
from vllm.config import set_current_vllm_config
from vllm.distributed import init_distributed_environment, initialize_model_parallel
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.model_loader import get_model, get_model_loader
from vllm.plugins import load_general_plugins


def write_model(folder: Path) -> None:
    config = transformers.LlamaConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=1000, head_dim=64, dtype="bfloat16",
        architectures=["LlamaForCausalLM"],
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder, max_shard_size="2MB")
    assert len(list(folder.glob("*.safetensors"))) > 1


def loaded(folder: Path, load_format: str, loader: str) -> dict[str, torch.Tensor]:
    """The parameters of the model."""
    arguments = EngineArgs(
        model=str(folder), load_format=load_format, skip_tokenizer_init=True, enforce_eager=True,
        max_model_len=128,
    )  # fmt: skip
    configuration = arguments.create_engine_config()
    with set_current_vllm_config(configuration):
        if not torch.distributed.is_initialized():
            ranks = f"file://{folder / 'ranks'}"
            init_distributed_environment(1, 0, ranks, 0, backend="gloo")
            initialize_model_parallel(1, 1)
        assert type(get_model_loader(configuration.load_config)).__name__ == loader
        return dict(get_model(vllm_config=configuration).state_dict())


def main(folder: Path) -> None:
    write_model(folder)
    load_general_plugins()
    expected = loaded(folder, "safetensors", "DefaultModelLoader")
    found = loaded(folder, "waywiser", "WaywiserModelLoader")
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        assert torch.equal(found[name], each), name
    print(f"{len(found)} tensors are equal")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
