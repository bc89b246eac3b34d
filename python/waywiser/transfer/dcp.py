"""Stages, saves and loads the checkpoints of `torch.distributed.checkpoint`.

from torch.distributed import checkpoint
from waywiser.transfer.dcp import SafetensorsReader, SafetensorsWriter, SnapshotStager

stager = SnapshotStager()
checkpoint.async_save(state, storage_writer=SafetensorsWriter(path), async_stager=stager)
checkpoint.load(state, storage_reader=SafetensorsReader(path))
"""

from waywiser.transfer.torch import TorchMissingError

try:
    from torch.distributed.checkpoint.state_dict_saver import AsyncSaveResponse  # noqa: F401
except ImportError:
    raise TorchMissingError(
        "this PyTorch saves no state that is still being staged",
        where="waywiser.transfer.dcp",
        remedy="python -m pip install 'torch>=2.9'",
    ) from None

from waywiser.transfer.dcp_stager import SnapshotStager
from waywiser.transfer.dcp_storage import SafetensorsReader, SafetensorsWriter

__all__ = ["SafetensorsReader", "SafetensorsWriter", "SnapshotStager"]
