"""A stand-in for the ``pynvml`` module: GPUs as dictionaries, everything else not supported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

PCIE_COUNTERS = (197, 198)
NVLINK_COUNTERS = (138, 139)


class FakeNvml:
    """``gpus`` are answers by function name (without ``nvmlDeviceGet``); what is not in there
    raises NVMLError, as a driver does that does not support it."""

    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    NVML_ERROR_DRIVER_NOT_LOADED = 9
    NVML_ERROR_NO_PERMISSION = 4

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__(f"NVML error {value}")
            self.value = value

    def __init__(self, gpus: list[dict[str, Any]], init_error: int = 0) -> None:
        self.gpus = gpus
        self.init_error = init_error
        self.open = 0
        self.event_sets = 0

    def nvmlInit(self) -> None:
        if self.init_error:
            raise self.NVMLError(self.init_error)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.159.04"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        """``handle_error`` of a GPU is the number of the error that is raised instead."""
        return self._answering(self.gpus[index])

    def nvmlDeviceGetHandleByPciBusId(self, address: str) -> dict[str, Any]:
        for gpu in self.gpus:
            if gpu["PciInfo"].busId.lower().endswith(address[4:]):
                return self._answering(gpu)
        raise self.NVMLError(6)

    def _answering(self, gpu: dict[str, Any]) -> dict[str, Any]:
        if gpu.get("handle_error"):
            raise self.NVMLError(gpu["handle_error"])
        return gpu

    def nvmlDeviceGetFieldValues(
        self, handle: dict[str, Any], fields: list[tuple[int, int]]
    ) -> list[Any]:
        values = handle.get("fields", {})
        return [
            SimpleNamespace(
                nvmlReturn=0 if field in values else 3,
                valueType=1 if field[0] in PCIE_COUNTERS else 3,
                value=SimpleNamespace(
                    uiVal=values.get(field, 0) % 2**32, ullVal=values.get(field, 0)
                ),
            )
            for field in fields
        ]

    def nvmlEventSetCreate(self) -> list[dict[str, Any]]:
        self.event_sets += 1
        return []

    def nvmlEventSetFree(self, events: list[dict[str, Any]]) -> None:
        self.event_sets -= 1

    def nvmlDeviceRegisterEvents(
        self, handle: dict[str, Any], kinds: int, events: list[dict[str, Any]]
    ) -> None:
        if "xids" not in handle:
            raise self.NVMLError(3)
        events.append(handle)

    def nvmlEventSetWait_v2(self, events: list[dict[str, Any]], milliseconds: int) -> Any:
        """The ``xids`` of registered GPUs, each once."""
        for handle in events:
            if handle["xids"]:
                return SimpleNamespace(device=handle, eventData=handle["xids"].pop(0))
        raise self.NVMLError(10)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def answer(handle: dict[str, Any], *arguments: Any) -> Any:
            found = handle.get(name.removeprefix("nvmlDeviceGet"))
            if callable(found):
                found = found(*arguments)
            if found is None:
                raise self.NVMLError(3)
            return found

        return answer


def h200_answers(index: int, count: int = 2) -> dict[str, Any]:
    """What an H200 in a virtual machine answers; its switches hide behind an address of ones."""
    hidden = SimpleNamespace(busId="FFFFFFFF:FF:FF.0")
    answers: dict[str, Any] = {
        "UUID": f"GPU-{index}",
        "Name": b"NVIDIA H200",
        "PciInfo": SimpleNamespace(busId=f"00000000:00:{6 + index:02X}.0"),
        "MemoryInfo": SimpleNamespace(total=150754820096, free=150109880320),
        "CudaComputeCapability": (9, 0),
        "MaxPcieLinkGeneration": 5,
        "CurrPcieLinkGeneration": 5,
        "MaxPcieLinkWidth": 16,
        "CurrPcieLinkWidth": 16,
        "MemoryBusWidth": 6016,
        "AddressingMode": 0,
        "PersistenceMode": 1,
        "EccMode": [1, 1],
        "MigMode": [0, 0],
        "ComputeRunningProcesses": [],
        "CurrentClocksEventReasons": 0x1 | 0x4 | 0x40,
        "PowerUsage": 78687,
        "Temperature": lambda sensor: 35,
        "ClockInfo": lambda clock: {1: 345, 2: 3201}[clock],
        "MaxClockInfo": lambda clock: {1: 1980, 2: 3201}[clock],
        "NvLinkState": lambda link: 1 if link < 18 else None,
        "NvLinkVersion": lambda link: 6,
        "NvLinkRemoteDeviceType": lambda link: 2,
        "NvLinkRemotePciInfo": lambda link: hidden,
        "P2PStatus": lambda other, right: 0,
        "fields": {(91, 0): 18} | {(164, link): 26562 for link in range(18)},
    }
    assert index < count
    return answers


def counting(answers: dict[str, Any], links: int = 18) -> dict[str, Any]:
    """The same GPU with all counters of its links, at zero; tests raise them in its ``fields``."""
    counters = {(field, link): 0 for field in NVLINK_COUNTERS for link in range(links)}
    counters |= {(field, 0): 0 for field in PCIE_COUNTERS}
    return {**answers, "fields": {**answers["fields"], **counters}}
