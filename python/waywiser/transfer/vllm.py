"""The load format ``waywiser`` of vLLM: its default loader, with files that `prefetch` reads.

    vllm serve llama-8b/ --load-format waywiser

vLLM calls `register` through the entry point ``vllm.general_plugins`` in each of its processes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

LOAD_FORMAT = "waywiser"


def register() -> None:
    """Registers the loader with vLLM."""
    import torch
    from vllm.model_executor import model_loader

    from waywiser import transfer

    @model_loader.register_model_loader(LOAD_FORMAT)
    class WaywiserModelLoader(model_loader.DefaultModelLoader):  # type: ignore[misc]
        """Loads one file after the other: beside the model the GPU has no more than one."""

        def __init__(self, load_config: Any) -> None:
            super().__init__(replace(load_config, load_format="safetensors"))

        def _get_weights_iterator(self, source: Any) -> Iterator[tuple[str, Any]]:
            if self.load_config.safetensors_load_strategy == "torchao":
                yield from super()._get_weights_iterator(source)  # tensors of parts
                return
            _, files, is_safetensors, *_ = self._prepare_weights(
                source.model_or_path,
                source.subfolder,
                source.revision,
                source.fall_back_to_pt,
                source.allow_patterns_overrides,
            )
            if not is_safetensors:
                yield from super()._get_weights_iterator(source)
                return
            if not getattr(self, "counter_before_loading_weights", 0.0):
                self.counter_before_loading_weights = time.perf_counter()
            device = "cuda" if torch.cuda.is_available() else "cpu"
            for path in sorted(files):
                with transfer.safe_open(path, "pt", device) as file, file.prefetch() as loader:
                    for name, tensor in loader:
                        yield source.prefix + name, tensor
