"""FlexKV's variables that choose between kernel and copy engine, as a shell file.

Read in taco-project/FlexKV, flexkv/common/config.py, commit
68df20ce2f36195924deee7477f3db8f974d3b0e: ``FLEXKV_USE_CE_TRANSFER_H2D`` and ``_D2H`` are read with
``bool(int(...))``, 0 by default; ``FLEXKV_H2D_CTA_NUM`` and ``_D2H_`` say how many blocks a kernel
has, 4 by default. Another version calls these ``FLEXKV_TRANSFER_NUM_CTA_H2D`` and ``_D2H``.
"""

from __future__ import annotations

from waywiser.curves import Subject
from waywiser.exchange.settings.list_methods import (
    DIRECTIONS,
    MULTIPROCESSORS,
    ONE_CALL_EACH,
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


def flexkv_variables(subject: Subject, piece: int = 0) -> str:
    """The text of the file. Raises `SettingsError` if the profile has no lists."""
    directions = list_directions(subject)
    parts = [
        commented(
            [
                *head_lines(subject, "Settings for FlexKV"),
                "Use: source FILE before the engine starts. A key of the file in "
                "FLEXKV_CONFIG_PATH (use_ce_transfer_h2d) comes before a variable.",
                "A piece is a block of one layer: tokens per block x KV heads of the GPU x head "
                "size x bytes of an element.",
                "Assumed: Waywiser's kernel is as fast as FlexKV's.",
            ]
        )
    ]
    omitted: list[OmittedSetting] = []
    for name in DIRECTIONS:
        choice = choose(directions.get(name), piece, ONE_CALL_EACH)
        parts.append(_direction(name, choice, omitted))
    parts.append(commented(omitted_lines(omitted)))
    return "\n".join(filter(None, parts))


def _direction(name: str, choice: SwitchChoice, omitted: list[OmittedSetting]) -> str:
    """The variables of a direction, with the reasons; those without a value go to ``omitted``."""
    variable = f"FLEXKV_USE_CE_TRANSFER_{name}"
    comments = [f"  {each.text}" for each in choice.found]
    if choice.kernel is None:
        omitted.append(OmittedSetting(variable, choice.reason))
        return commented([f"{name}, measured:", *comments]) if comments else ""
    chosen = "kernel" if choice.kernel else "copy engine"
    text = commented([f"{name}: {chosen}: {choice.reason}.", *comments])
    text += f"export {variable}={0 if choice.kernel else 1}\n"
    blocks = {d.kernel.transfer.parameters.get(MULTIPROCESSORS, "") for d in choice.found}
    if choice.kernel and len(blocks) == 1 and (number := blocks.pop()):
        text += f"export FLEXKV_TRANSFER_NUM_CTA_{name}={number}\n"
        text += f"export FLEXKV_{name}_CTA_NUM={number}\n"
    elif choice.kernel:
        reason = "the number of multiprocessors was not varied"
        omitted.append(OmittedSetting(f"FLEXKV_TRANSFER_NUM_CTA_{name}", reason))
    return text
