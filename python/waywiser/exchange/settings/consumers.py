"""The programs that settings can be exported for."""

from __future__ import annotations

from waywiser.curves import Subject
from waywiser.exchange.settings.flexkv import flexkv_variables
from waywiser.exchange.settings.kv_offload import kv_offload_json
from waywiser.exchange.settings.origin import SettingsError
from waywiser.exchange.settings.reframe import reframe_references
from waywiser.exchange.settings.sglang import sglang_config
from waywiser.exchange.settings.ucx import ucx_conf
from waywiser.exchange.settings.vllm import vllm_constants
from waywiser.machine import require_real
from waywiser.profile import Profile

CONSUMERS = ("ucx", "vllm", "sglang", "flexkv", "kv-offload", "reframe")

WITH_PIECE = ("sglang", "flexkv")
"""Those that have one switch for all sizes of pieces."""


def settings_text(profile: Profile, consumer: str, piece: int = 0) -> str:
    """The settings of a consumer; ``piece`` is the bytes of the pieces that it will move.

    Raises `SettingsError` for an unknown consumer, for a piece that it has no use for, and if the
    profile has nothing that it reads; `SimulatedMachineError` for a simulated machine.
    """
    if consumer not in CONSUMERS:
        raise SettingsError(
            f"{consumer!r} is no consumer of settings",
            remedy=f"write --for {', '.join(CONSUMERS[:-1])} or {CONSUMERS[-1]}",
        )
    if piece and consumer not in WITH_PIECE:
        raise SettingsError(
            f"--piece is not for {consumer}, which chooses by size itself", remedy="remove it"
        )
    require_real(profile.machine, str(profile.path))
    subject = Subject.of(profile)
    if consumer == "sglang":
        return sglang_config(subject, piece)
    if consumer == "flexkv":
        return flexkv_variables(subject, piece)
    if consumer == "kv-offload":
        return kv_offload_json(subject, profile.created)
    if consumer == "reframe":
        return reframe_references(subject)
    return ucx_conf(subject) if consumer == "ucx" else vllm_constants(subject)
