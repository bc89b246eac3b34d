"""SGLang's ``--hicache-io-backend`` as a file for its option ``--config``.

Read in sgl-project/sglang, release 0.5.23, python/sglang/srt/arg_groups/fields/memory.py: choices
``direct``, ``kernel``, ``kernel_ascend``, default ``kernel``, for both directions;
python/sglang/srt/utils/server_args_config_parser.py: YAML, one key for each option.
``direct`` moves pieces by copy engines; ``kernel`` by a kernel of sgl-kernel, whose ``block_quota``
(sgl-kernel/python/sgl_kernel/kvcacheio.py) no option sets.
"""

from __future__ import annotations

from collections.abc import Mapping

from waywiser.curves import Subject
from waywiser.exchange.settings.list_methods import (
    DIRECTIONS,
    ONE_CALL,
    ONE_CALL_EACH,
    Direction,
    SwitchChoice,
    choose,
    list_directions,
)
from waywiser.exchange.settings.origin import (
    OmittedSetting,
    commented,
    head_lines,
    omitted_lines,
)

KEY = "hicache-io-backend"

CALLS = (ONE_CALL_EACH, ONE_CALL)


def sglang_config(subject: Subject, piece: int = 0) -> str:
    """The text of the file. Raises `SettingsError` if the profile has no lists."""
    directions = list_directions(subject)
    choices = {name: choose(directions.get(name), piece, *CALLS) for name in DIRECTIONS}
    lines = [
        *head_lines(subject, "Settings for SGLang's hierarchical cache"),
        "Use: python -m sglang.launch_server --config FILE --enable-hierarchical-cache ...",
        "A piece is a page of one layer: page size x KV heads of the GPU x head size x bytes of an "
        "element.",
    ]
    for name, choice in choices.items():
        lines.append(f"{name}: {_chosen(choice)}{choice.reason}.")
        lines += [f"  {each.text}" for each in choice.found]
    omitted = [OmittedSetting("block_quota", "sgl-kernel has no option for it")]
    decided = _both(choices)
    values = ""
    if decided is None:
        reason = next((c.reason for c in choices.values() if c.kernel is None), "")
        omitted.insert(
            0, OmittedSetting(KEY, reason or "the two directions differ, and SGLang has one option")
        )
    else:
        values = f"{KEY}: {'kernel' if decided else 'direct'}\n"
        lines.append(
            "Assumed: SGLang's kernel is as fast as Waywiser's, and direct as the faster of "
            "cudaMemcpyBatchAsync and cudaMemcpyAsync. With direct, SGLang needs the memory layout "
            "page_first_direct or layer_first."
        )
    return "\n".join(filter(None, (commented(lines), values, commented(omitted_lines(omitted)))))


def _chosen(choice: SwitchChoice) -> str:
    return "" if choice.kernel is None else "kernel: " if choice.kernel else "direct: "


def _both(choices: Mapping[Direction, SwitchChoice]) -> bool | None:
    """The choice for both directions; if they differ, that of the larger loss counts."""
    known = [choice for choice in choices.values() if choice.kernel is not None]
    if len(known) < len(choices):
        return None

    def loss(kernel: bool) -> float:
        return max(each.loss(kernel) for choice in known for each in choice.found)

    return loss(True) < loss(False)
