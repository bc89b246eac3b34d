"""The constants of vLLM's KV offload that choose between Triton kernel and copy engine.

vLLM has no option for them. They are constants in its source, so the file is Python with the same
names, for a developer who patches the source.

Read in vllm-project/vllm, vllm/v1/kv_offload/cpu/swap_blocks_triton.py, commit
083dfa2757a59bb2f6d2bbe131bd44160190f8f3: ``NUM_SMS = 12``, ``THRESHOLD_BYTES = 28 * 1024``,
``MIN_N = 16``. From host to GPU, pieces shorter than ``THRESHOLD_BYTES`` are moved by the kernel
if there are at least ``MIN_N``; from GPU to host, the copy engine moves all.
"""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.curves import Subject
from waywiser.exchange.settings.list_methods import (
    ONE_CALL,
    KernelAndEngine,
    KernelRule,
    ListDirection,
    best_rule,
    kernels_and_engines,
    largest_loss,
    list_directions,
)
from waywiser.exchange.settings.origin import (
    LEAST_LOSS,
    OmittedSetting,
    SettingsError,
    commented,
    head_lines,
    longer_text,
    omitted_lines,
)
from waywiser.words import format_bytes

FILE = "vllm/v1/kv_offload/cpu/swap_blocks_triton.py"

DEFAULT = KernelRule(28 * 2**10, 16)
"""``THRESHOLD_BYTES`` and ``MIN_N`` of vLLM."""


def vllm_constants(subject: Subject) -> str:
    """The text of the file. Raises `SettingsError` if no list was moved by both."""
    directions = list_directions(subject)
    to_gpu = directions.get("H2D")
    found = kernels_and_engines(to_gpu.cells, ONE_CALL) if to_gpu is not None else []
    if to_gpu is None or not found:
        raise SettingsError(
            "no list from host to GPU was moved by both a kernel and cudaMemcpyBatchAsync",
            remedy=subject.surveyed(
                "measure them: waywiser survey --preset standard --only 'as list'"
            ),
        )
    rule = best_rule(found, DEFAULT.from_count)
    omitted = [OmittedSetting("NUM_SMS", "the number of multiprocessors was not varied")]
    values = f"THRESHOLD_BYTES = {rule.below}\n"
    if rule.from_count > DEFAULT.from_count:
        values += f"MIN_N = {rule.from_count}\n"
    else:
        omitted.append(OmittedSetting("MIN_N", _why_not(rule, found)))
    other = "the faster one"
    lines = [
        *head_lines(subject, "Constants for vLLM's KV offload"),
        f"vLLM has no option for them: change them in {FILE}.",
        f"Measured: {to_gpu.ends}, from call to completion:",
        *(f"  {each.text}" for each in found),
        f"With these values, the chosen method takes {_loss_text(found, rule, other)}.",
        f"With vLLM's own ({format_bytes(DEFAULT.below)}, {DEFAULT.from_count}) it takes "
        f"{_loss_text(found, DEFAULT, other)}.",
        "Assumed: Waywiser's kernel is as fast as vLLM's Triton kernel of 12 blocks.",
        *_from_gpu(directions.get("D2H")),
    ]
    return commented(lines) + "\n" + values + "\n" + commented(omitted_lines(omitted))


def _loss_text(found: Sequence[KernelAndEngine], rule: KernelRule, other: str) -> str:
    loss, where = largest_loss(found, rule)
    at = f" ({where.cell.text})" if loss >= LEAST_LOSS else ""
    return longer_text(loss, other) + at


def _why_not(rule: KernelRule, found: Sequence[KernelAndEngine]) -> str:
    counts = [each.cell.count for each in found if each.cell.piece < rule.below]
    smallest = min(counts, default=0)
    if smallest > DEFAULT.from_count:
        return (
            f"fewer than {smallest} pieces below the threshold were not measured; vLLM has "
            f"{DEFAULT.from_count}"
        )
    return f"no measured count loses less than vLLM's own {DEFAULT.from_count}"


def _from_gpu(back: ListDirection | None) -> list[str]:
    found = kernels_and_engines(back.cells, ONE_CALL) if back is not None else []
    if not found:
        return []
    return [
        "From GPU to host, vLLM always uses the copy engine (_select_swap_blocks_fn in "
        f"gpu_worker.py). It takes {_loss_text(found, KernelRule(0, 0), 'the kernel')}."
    ]
