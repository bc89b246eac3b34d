"""Settings of KV-cache offload against what each consumer reads."""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import profiles
from exchange.settings.exported import CHECK, FOUR, H100, comments, lists, made, settings, subject
from waywiser.exchange.settings.flexkv import flexkv_variables
from waywiser.exchange.settings.kv_offload import KvOffload, kv_offload_json, kv_offload_schema
from waywiser.exchange.settings.list_methods import (
    KernelRule,
    best_rule,
    kernels_and_engines,
    list_directions,
)
from waywiser.exchange.settings.origin import SettingsError, longer_text
from waywiser.exchange.settings.sglang import sglang_config
from waywiser.exchange.settings.vllm import vllm_constants

SCHEMA = Path(__file__).parents[3] / "docs" / "kv-offload.schema.json"

TO_GPU = "pinned@numa:0 -> device@gpu:0"
TO_HOST = "device@gpu:0 -> pinned@numa:0"

KIB = 2**10

SECONDS = (
    (4 * KIB, 64, 10e-6, 40e-6),
    (4 * KIB, 256, 20e-6, 200e-6),
    (32 * KIB, 8, 20e-6, 10e-6),
    (32 * KIB, 256, 200e-6, 300e-6),
    (128 * KIB, 64, 300e-6, 200e-6),
)
"""Piece, count, time of the kernel, time of the copy engine: the copy engine is faster for few
pieces of 32 KiB and for pieces of 128 KiB."""


def test_vllm_gets_python_with_the_names_of_its_constants() -> None:
    """vllm-project/vllm, vllm/v1/kv_offload/cpu/swap_blocks_triton.py, commit
    083dfa2757a59bb2f6d2bbe131bd44160190f8f3, has module constants of these names, all integers."""
    for packed in (H100, FOUR):
        module = ast.parse(vllm_constants(subject(packed)))
        found = {}
        for node in module.body:
            assert isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            assert isinstance(node.value, ast.Constant)
            found[node.targets[0].id] = node.value.value
        assert "THRESHOLD_BYTES" in found
        assert found.keys() <= {"NUM_SMS", "THRESHOLD_BYTES", "MIN_N"}
        assert all(isinstance(value, int) and value >= 0 for value in found.values())


def test_vllm_moves_longer_pieces_by_kernel_on_a_kept_h200() -> None:
    """128 KiB pieces are faster by kernel there, 1 MiB pieces by the copy engine."""
    text = vllm_constants(subject(FOUR))
    assert settings(text) == ["THRESHOLD_BYTES = 1048576"]
    assert "With vLLM's own (28 KiB, 16) it takes at most 48 % longer" in comments(text)
    assert "Not set: NUM_SMS: the number of multiprocessors was not varied." in text
    assert "585 x 28 KiB: kernel 49.7 GB/s, copy engine 33.7 GB/s" in comments(text)


def test_a_kernel_is_known_by_its_traits_and_not_by_its_call() -> None:
    found = made(
        {
            f"{TO_GPU} by {executor} as list[piece=4096] of {64 * 4 * KIB}": 1e9
            for executor in ("sm", "batch", "pack", "copy-engine")
        }
    )
    (cell,) = list_directions(found)["H2D"].cells
    assert {m.name for m in cell.methods} >= {"sm", "batch", "copy-engine"}
    assert [m.name for m in cell.methods if m.is_kernel] == ["sm"]
    assert cell.kernel is not None and cell.kernel.name == "sm"


def test_a_crossover_by_size_and_count_is_found() -> None:
    found = made(lists(SECONDS, TO_GPU, "batch"))
    both = kernels_and_engines(list_directions(found)["H2D"].cells, "cudaMemcpyBatchAsync")
    assert best_rule(both, 16) == KernelRule(128 * KIB, 16)
    fewer = best_rule(both, 4)
    assert fewer.below == 128 * KIB and fewer.from_count > 8
    text = vllm_constants(found)
    assert settings(text) == ["THRESHOLD_BYTES = 131072"]
    assert "it takes at most 50 % longer than the faster one (256 x 32 KiB)" in text


def test_a_copy_engine_that_is_always_faster_gets_no_kernel() -> None:
    found = made(lists([(4 * KIB, 64, 2e-5, 1e-5), (8 * KIB, 64, 3e-5, 1e-5)], TO_GPU, "batch"))
    assert settings(vllm_constants(found)) == ["THRESHOLD_BYTES = 0"]


def test_a_kernel_that_is_always_faster_gets_all_measured_sizes() -> None:
    found = made(lists([(4 * KIB, 64, 1e-5, 2e-5), (8 * KIB, 64, 1e-5, 3e-5)], TO_GPU, "batch"))
    text = vllm_constants(found)
    assert settings(text) == [f"THRESHOLD_BYTES = {8 * KIB + 1}"]
    assert "MIN_N: fewer than 64 pieces below the threshold were not measured" in text


def sglang_parser() -> argparse.ArgumentParser:
    """sgl-project/sglang, release 0.5.23, python/sglang/srt/arg_groups/fields/memory.py: the field
    ``hicache_io_backend`` has ``choices=["direct", "kernel", "kernel_ascend"]`` and the default
    ``kernel``."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument(
        "--hicache-io-backend", choices=["direct", "kernel", "kernel_ascend"], default="kernel"
    )
    return parser


def sglang_arguments(text: str) -> list[str]:
    """The arguments that SGLang makes of a file: python/sglang/srt/utils/
    server_args_config_parser.py turns each key of the YAML mapping into ``--key value``."""
    found = []
    for line in settings(text):
        key, separator, value = line.partition(": ")
        assert separator and value and not value.strip().startswith(("[", "{", "-"))
        found += [f"--{key}", value]
    return found


@pytest.mark.parametrize(("piece", "chosen"), [(4 * KIB, "kernel"), (2**20, "direct")])
def test_sglang_gets_a_choice_of_its_option(piece: int, chosen: str) -> None:
    text = sglang_config(subject(FOUR), piece)
    taken = sglang_parser().parse_args(sglang_arguments(text))
    assert sglang_arguments(text) == ["--hicache-io-backend", chosen]
    assert taken.hicache_io_backend == chosen
    assert "H2D: " in comments(text) and "D2H: " in comments(text)


def test_sglang_gets_nothing_without_the_size_of_a_piece() -> None:
    text = sglang_config(subject(FOUR))
    assert settings(text) == []
    assert "Not set: hicache-io-backend: it depends on the bytes of a piece" in text
    far = sglang_config(subject(FOUR), 2**23)
    assert "pieces of about 8 MiB were not measured; the nearest are of 1 MiB" in far


def flexkv_namespace(text: str) -> dict[str, object]:
    """What FlexKV reads: taco-project/FlexKV, flexkv/common/config.py, commit
    68df20ce2f36195924deee7477f3db8f974d3b0e: ``bool(int(os.getenv(
    'FLEXKV_USE_CE_TRANSFER_H2D', 0)))`` and the same for D2H, ``int(os.getenv(
    'FLEXKV_H2D_CTA_NUM', 4))`` and ``FLEXKV_D2H_CTA_NUM``. The file is sourced by a shell."""
    read = (
        "import json, os; print(json.dumps({"
        "'h2d': bool(int(os.getenv('FLEXKV_USE_CE_TRANSFER_H2D', 0))),"
        "'d2h': bool(int(os.getenv('FLEXKV_USE_CE_TRANSFER_D2H', 0))),"
        "'cta': int(os.getenv('FLEXKV_H2D_CTA_NUM', 4)),"
        "'names': sorted(n for n in os.environ if n.startswith('FLEXKV_'))}))"
    )
    answer = subprocess.run(
        ["sh", "-c", f'. /dev/stdin && exec "{sys.executable}" -c "$READ"'],
        input=text,
        env={"PATH": os.environ["PATH"], "READ": read},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, object] = json.loads(answer.stdout)
    return found


def test_flexkv_gets_variables_that_it_reads() -> None:
    found = flexkv_namespace(flexkv_variables(subject(FOUR), 32 * KIB))
    assert found == {
        "h2d": False,
        "d2h": False,
        "cta": 4,
        "names": ["FLEXKV_USE_CE_TRANSFER_D2H", "FLEXKV_USE_CE_TRANSFER_H2D"],
    }
    engine = flexkv_namespace(flexkv_variables(subject(H100), 2**20))
    assert engine["h2d"] is True


def test_flexkv_gets_the_multiprocessors_that_were_set() -> None:
    rates = lists([(32 * KIB, 64, 1e-5, 5e-5)], TO_GPU, "copy-engine")
    rates = {text.replace(" by sm", " by sm[blocks=2]"): rate for text, rate in rates.items()}
    text = flexkv_variables(made(rates), 32 * KIB)
    found = flexkv_namespace(text)
    assert found["cta"] == 2 and found["h2d"] is False
    assert "export FLEXKV_TRANSFER_NUM_CTA_H2D=2" in settings(text)
    assert "Not set: FLEXKV_USE_CE_TRANSFER_D2H: no list was moved by both" in text


def test_the_directions_of_sglang_weigh_by_what_is_lost() -> None:
    rates = lists([(32 * KIB, 64, 1e-5, 1.1e-5)], TO_GPU, "batch")
    rates |= lists([(32 * KIB, 64, 2e-5, 1e-5)], TO_HOST, "batch")
    assert settings(sglang_config(made(rates), 32 * KIB)) == ["hicache-io-backend: direct"]


def test_the_json_is_of_its_schema_and_has_what_was_measured() -> None:
    text = kv_offload_json(subject(FOUR), "2026-11-20")
    made_of = msgspec.json.decode(text, type=KvOffload)
    assert (made_of.format, made_of.version) == ("waywiser-kv-offload", 1)
    assert {each.direction for each in made_of.directions} == {"H2D", "D2H"}
    lines = {point.text: point for point in subject(FOUR).overview.series}
    for direction in made_of.directions:
        assert direction.crossovers and direction.points
        for point in direction.points:
            rates = [method.gb_per_s for method in point.methods]
            assert rates == sorted(rates, reverse=True)
            for method in point.methods:
                found = lines[method.series].estimate
                assert found is not None
                seconds = point.piece_bytes * point.count / method.gb_per_s / 1e9
                assert seconds == pytest.approx(found.seen_median)
                assert method.samples == found.count
    assert "hostname" not in text and subject(FOUR).machine.hostname not in text.split('"')


def test_the_json_says_which_multiprocessors_are_known() -> None:
    rates = lists([(32 * KIB, 64, 1e-5, 5e-5)], TO_GPU, "batch")
    text = kv_offload_json(made(rates))
    found = msgspec.json.decode(text, type=KvOffload)
    known = {m.call: m.multiprocessors for m in found.directions[0].points[0].methods}
    assert known == {"kernel that loads and stores": None, "cudaMemcpyBatchAsync": 0}
    assert [each.name for each in found.omitted] == ["D2H"]


def test_the_schema_is_current() -> None:
    fresh = (
        "python -c 'from waywiser.exchange.settings.kv_offload import kv_offload_schema as s; ...'"
    )
    assert SCHEMA.read_text() == kv_offload_schema(), f"write docs/kv-offload.schema.json: {fresh}"


@pytest.mark.parametrize("make", [vllm_constants, sglang_config, flexkv_variables, kv_offload_json])
def test_a_profile_without_lists_is_an_error(make: object) -> None:
    assert callable(make)
    with pytest.raises(SettingsError, match=r"no list(s of pieces)? .*(GPU|host)"):
        make(subject(CHECK))


def test_losses_are_shown_without_false_digits() -> None:
    assert longer_text(0.004, "it") == "no longer than it"
    assert longer_text(0.126, "it") == "at most 13 % longer than it"
    assert longer_text(2.5, "it") == "at most 3.5 times as long as it"


def test_made_up_profiles_are_of_the_test_machine() -> None:
    assert profiles.machine().gpus[0].name in kv_offload_json(
        made(lists([(32 * KIB, 64, 1e-5, 5e-5)], TO_GPU, "batch"))
    )
