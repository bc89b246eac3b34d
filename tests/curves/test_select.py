from __future__ import annotations

from itertools import compress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept import RESULTS, unpacked
from machine import captured
from waywiser.curves.headline import GROUPS, group_of, headline_label
from waywiser.curves.name import label_of, name_of
from waywiser.curves.select import (
    MARK,
    NothingMatches,
    UnknownLinks,
    matches_any,
    nearest,
    require_match,
    sized_texts_of,
    suggestion,
    texts_of,
    texts_of_unsupported,
)
from waywiser.curves.subject import read_subject
from waywiser.curves.terms import OTHER_NAMES, TERMS
from waywiser.machine.calls import call_text
from waywiser.machine.machine import Gpu
from waywiser.words import Operation, Workload
from waywiser.words.sizes_in_text import with_units

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"
SYNC = "pinned@numa:0 -> device@gpu:0 by copy-engine[api=sync]"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("pinned", [H2D, D2H, SYNC]),
        ("device pinned", [H2D, D2H, SYNC]),
        ("PINNED@numa:0 -> device", [H2D, SYNC]),
        ("gpu:0 -> pinned", [D2H]),
        ("-> pinned by", [D2H]),
        ("pinned* -> device*", [H2D, SYNC]),
        ("*copy-engine", [H2D, D2H]),
        ("*[api=sync]", [SYNC]),
        ("pinned@numa:? -> *", [H2D, SYNC]),
        ("cpu", []),
    ],
)
def test_words_must_all_occur_and_globs_match_whole(pattern: str, expected: list[str]) -> None:
    assert [text for text in (H2D, D2H, SYNC) if matches_any([text], [pattern])] == expected


def test_each_printed_label_of_a_survey_selects_its_path_alone(tmp_path: Path) -> None:
    packed = RESULTS / "2026-11-23-surveys" / "h200-standard-1.wwp.xz"
    node = read_subject(unpacked(packed, tmp_path / "h200.wwp"))
    curves = {series.curve: series.workload for series in node.points}
    texts = {curve: texts_of(workload, node.machine) for curve, workload in curves.items()}
    groups = set()
    for curve, workload in curves.items():
        group, name = group_of(workload, node.machine.traits), name_of(workload)
        groups.add(group)
        for label in {curve, with_units(curve), with_units(name), headline_label(group, name)}:
            assert [each for each in curves if matches_any(texts[each], [label])] == [curve], label
    assert {"H2D", "D2H", "bidirectional", "local copy", "host copy", "pageable D2H"} < groups


def test_each_printed_size_selects_its_series_alone() -> None:
    sizes = ("32", "2 MiB", "32 MiB")
    workloads = [Workload.parse(f"{path} of {size}") for path in (H2D, SYNC) for size in sizes]
    texts = [sized_texts_of(each) for each in workloads]
    for workload in workloads:
        for label in (str(workload), label_of(workload), with_units(str(workload))):
            matching = (matches_any(known, [label]) for known in texts)
            assert list(compress(workloads, matching)) == [workload]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (f"H2D {H2D}", [H2D]),
        (f"h2d {SYNC}", [SYNC]),
        (f"D2H {H2D}", []),
        (f"bidirectional {H2D}", []),
        (f"pageable H2D {H2D}", []),
        ("h2d pinned@numa:0 -> device@gpu:0", [H2D, SYNC]),
    ],
)
def test_a_group_before_a_path_is_part_of_its_label(pattern: str, expected: list[str]) -> None:
    texts = {path: texts_of(Workload.parse(path)) for path in (H2D, D2H, SYNC)}
    assert [path for path in texts if matches_any(texts[path], [pattern])] == expected


def test_a_whole_path_matches_its_kinds_if_no_place_supports_them() -> None:
    path = "pinned@numa:0 -> device@gpu:0 by cpu"
    assert matches_any(texts_of_unsupported("pinned -> device by cpu"), [path])
    assert not matches_any(texts_of_unsupported("device -> pinned by cpu"), [path])
    assert not matches_any(texts_of(Workload.parse(path.replace("gpu:0", "gpu:1"))), [path])


def test_a_word_with_a_place_is_whole_at_both_ends() -> None:
    texts = ["launch@gpu:1", "graph-launch@gpu:1", "launch@gpu:10"]
    assert [each for each in texts if matches_any([each], ["launch@gpu:1"])] == texts[:1]
    assert [each for each in texts if matches_any([each], ["launch"])] == texts


PEER = "device@gpu:0 -> device@gpu:1 by sm"
LOCAL = "device@gpu:0 -> device@gpu:0 by copy-engine"
PAGEABLE = "pageable@numa:0 -> device@gpu:0 by copy-engine"
HOST = "pageable@numa:0 -> pageable@numa:0 by cpu"


@pytest.mark.parametrize(
    ("text", "terms", "groups"),
    [
        (H2D, "h2d memcpy", "H2D"),
        (SYNC, "h2d memcpy", "H2D"),
        (D2H, "d2h memcpy", "D2H"),
        (H2D.replace("copy-engine", "sm"), "h2d zero-copy", "H2D"),
        (H2D.replace("copy-engine", "pack"), "h2d", "H2D"),
        (PAGEABLE, "h2d memcpy", "H2D, pageable H2D"),
        (LOCAL, "d2d local memcpy", "local copy"),
        (LOCAL.replace("copy-engine", "sm"), "d2d local", ""),
        (PEER, "d2d p2p", "P2P"),
        (f"{PEER}; device@gpu:1 -> device@gpu:0 by sm", "p2p bidir bidirectional",
         "P2P, bidirectional, P2P bidirectional"),
        (HOST, "h2h", "host copy"),
        (f"{H2D}; {D2H}", "bidir bidirectional memcpy", "bidirectional"),
        (f"{H2D}; {H2D.replace(':0', ':1')}", "memcpy", "host-to-all"),
        ("managed@numa:0 -> managed@gpu:0 by prefetch", "h2d uvm", "H2D"),
        ("file@file:scratch -> pageable@numa:0 by direct-io", "disk", ""),
        (f"{H2D} as list[piece=4096]", "h2d memcpy scattered", "H2D"),
    ],
)  # fmt: skip
def test_terms_of_the_field_match_what_they_apply_to(text: str, terms: str, groups: str) -> None:
    texts = texts_of(Workload.parse(text))
    found_terms = {term for term in TERMS if matches_any(texts, [term.upper()])}
    assert found_terms == {*terms.split(), "latency"}  # a curve may have small sizes
    found = {name for name in GROUPS if matches_any(texts, [name.upper()])}
    assert found == {group for group in groups.split(", ") if group}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("h2d", [H2D, SYNC, PAGEABLE]),
        ("H2D pinned", [H2D, SYNC]),
        ("pageable h2d", [PAGEABLE]),
        ("h2d gpu:1", []),
        ("h2d d2h", []),
        ("d2d sm", [PEER]),
        ("memcpy -> device", [H2D, SYNC, PAGEABLE, LOCAL]),
        ("h2d*", []),
        ("h2d pinned*", [H2D, SYNC]),
        ("h2d *[api=sync]", [SYNC]),
        ("memcpy device@gpu:? -> device*", [LOCAL]),
        ("d2h pinned*", []),
        ("xh2d", []),
    ],
)
def test_terms_are_whole_words_and_combine_with_others(pattern: str, expected: list[str]) -> None:
    texts = {
        text: texts_of(Workload.parse(text)) for text in (H2D, SYNC, D2H, PAGEABLE, PEER, LOCAL)
    }
    assert [text for text, known in texts.items() if matches_any(known, [pattern])] == expected


def test_memcpy_stands_for_all_calls_of_its_paths() -> None:
    paths = [H2D, SYNC, PEER.replace("by sm", "by copy-engine")]
    calls = [call_text(Workload.parse(path).transfers) for path in paths]
    assert len(set(calls)) == 3
    family = TERMS["memcpy"].split()[1]
    assert all(call.startswith(family) for call in calls)


@pytest.mark.parametrize("pattern", ["direct", "mem", "2d", "*2d*", "bidir*", "io h2d"])
def test_terms_match_no_part_of_a_word(pattern: str) -> None:
    for text in (H2D, f"{H2D}; {D2H}"):
        assert not matches_any(texts_of(Workload.parse(text)), [pattern])


def test_terms_combine_with_sizes() -> None:
    texts = sized_texts_of(Workload.parse(f"{H2D} of 4096"))
    assert matches_any(texts, ["h2d 4096"]) and not matches_any(texts, ["h2d 8192"])


@pytest.mark.parametrize(
    ("workload", "applies"),
    [
        (f"{H2D} of 8", True),
        (f"{H2D} of 4096", True),
        (f"{H2D} of 8192", False),
        (f"{H2D} of 4096; {D2H} of 4096", True),
        (f"{H2D} of 8; {D2H} of 8192", False),
    ],
)
def test_latency_is_that_of_small_sizes(workload: str, applies: bool) -> None:
    texts = sized_texts_of(Workload.parse(workload))
    assert matches_any(texts, ["latency"]) is applies
    assert matches_any(texts, ["latency copy-engine"]) is applies
    assert not matches_any(texts, ["latency sm"])


def test_latency_is_also_a_word_of_operations() -> None:
    for text, applies in (("sm-latency@gpu:0", True), ("kernel-launch@gpu:0", False)):
        texts = sized_texts_of(Workload(operation=Operation.parse(text)))
        assert matches_any(texts, ["latency"]) is applies


DETOUR = PEER.replace(" by sm", " by staged")
OVER_HELPERS = H2D.replace("copy-engine", "relay")


@pytest.mark.parametrize(
    ("name", "nvlink", "pcie"),
    [
        ("h200-vm-8gpu", [PEER, OVER_HELPERS], [H2D, D2H, DETOUR, OVER_HELPERS]),
        ("mig", [], [H2D, D2H, OVER_HELPERS]),
        ("no-gpu", [], []),
    ],
)
def test_links_are_those_of_the_machine(name: str, nvlink: list[str], pcie: list[str]) -> None:
    of = captured.machine(name)
    paths = [H2D, D2H, PEER, DETOUR, OVER_HELPERS, LOCAL, HOST]
    texts = {path: texts_of(Workload.parse(path), of) for path in paths}
    for term, expected in (("nvlink", nvlink), ("pcie", pcie)):
        assert [path for path in paths if matches_any(texts[path], [term])] == expected
    assert not matches_any(texts[HOST], ["pcie"])
    found = [path for path in paths if matches_any(texts[path], ["pcie h2d"])]
    assert found == [path for path in pcie if path in (H2D, OVER_HELPERS)]


def test_links_that_are_not_known_are_an_error_with_a_remedy() -> None:
    bare = Gpu(0, "", "A GPU", "")
    imported = msgspec.structs.replace(captured.machine("no-gpu"), gpus=(bare,))
    for machine in (imported, None):
        texts = [*texts_of(Workload.parse(H2D), machine), *texts_of(Workload.parse(HOST), machine)]
        with pytest.raises(UnknownLinks, match="'NVLink h2d': the links of these paths are") as e:
            require_match(["NVLink h2d"], texts)
        assert "--topology FILE" in e.value.remedy
        with pytest.raises(NothingMatches, match="matches no series"):
            require_match(["nvlink h2h"], texts)


def test_terms_apply_to_paths_that_are_not_supported() -> None:
    assert matches_any(texts_of_unsupported(PEER), ["p2p sm"])
    assert matches_any(texts_of_unsupported("device -> device by detour"), ["device detour"])


def test_terms_that_match_nothing_are_explained() -> None:
    with pytest.raises(NothingMatches) as caught:
        require_match(["disk h2d"], texts_of(Workload.parse(H2D)))
    assert caught.value.remedy == (
        "disk: one side is a file; h2d: one transfer from host memory to a GPU; to select each of "
        "them: --only disk --only h2d"
    )


@pytest.mark.parametrize("pattern", ["h2d,h2h", "h2d, h2h"])
def test_a_list_is_answered_with_how_to_select_each(pattern: str) -> None:
    with pytest.raises(NothingMatches) as caught:
        require_match([pattern], [*texts_of(Workload.parse(H2D)), *texts_of(Workload.parse(HOST))])
    assert caught.value.remedy == "to select each of them: --only h2d --only h2h"


def test_blanks_select_nothing() -> None:
    with pytest.raises(NothingMatches, match="is empty"):
        require_match([" "], texts_of(Workload.parse(H2D)))


def test_a_misspelt_word_is_corrected_and_no_mark_is_shown() -> None:
    texts = [text for known in (H2D, D2H) for text in texts_of(Workload.parse(known))]
    with pytest.raises(NothingMatches) as caught:
        require_match(["pinend h2d"], [*texts, "pinned@numa:0 -> device@gpu:7 by sm"])
    remedy = caught.value.remedy
    assert remedy.startswith("did you mean 'pinned h2d'? nearest: pinned@numa:0")
    assert remedy.isprintable()
    with pytest.raises(NothingMatches) as caught:
        require_match(["h2d gpu:9"], texts)
    assert caught.value.remedy.startswith("nearest: pinned@numa:0")
    with pytest.raises(NothingMatches) as caught:
        require_match(["pinnde@numa:0 copyengine"], texts)
    assert "did you mean 'pinned@numa:0 copy-engine'?" in caught.value.remedy


def test_the_nearest_texts_share_words_and_terms() -> None:
    texts = [text for known in (H2D, D2H) for text in texts_of(Workload.parse(known))]
    for term, path in (("h2d", H2D), ("d2h", D2H)):
        assert suggestion(f"{term} prefetch", texts).startswith(f"nearest: {path}")
    assert suggestion("h2d", []) == ""


def test_sizes_are_matched_as_they_are_shown() -> None:
    text = f"{H2D} as list[piece=28672] of 67108864"
    assert matches_any([text], ["list[piece=28KiB]"])
    assert matches_any([text], ["copy-engine of 64 MiB"]) and matches_any(
        [text], ["*[piece=28KiB] of 64MiB"]
    )
    assert not matches_any([text], ["piece=28MiB"]) and not matches_any([text], ["of 64 KiB"])


@pytest.mark.parametrize("pattern", ["raed file", "stagd file"])
def test_a_correction_that_matches_nothing_is_not_suggested(pattern: str) -> None:
    with pytest.raises(NothingMatches) as caught:
        require_match([pattern], [HOST])
    assert caught.value.remedy == f"nearest: {HOST}"


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        ("local copy", 1),
        ("d2d memcpy", 1),
        ("P2P", 2),
        ("p2p memcpy", 2),
        ("host-to-all", 2),
        ("ring", 3),
        ("pairs-bidirectional", 4),
    ],
)
def test_gpus_are_asked_for_only_where_they_are_missing(pattern: str, needed: int) -> None:
    few = f"it needs {needed} GPUs?, available: {needed - 1} "
    with pytest.raises(NothingMatches, match=few):
        require_match([pattern], [HOST], gpus=needed - 1)
    for gpus in (needed, None):
        with pytest.raises(NothingMatches, match="matches no series"):
            require_match([pattern], [HOST], gpus=gpus)


@pytest.mark.parametrize("pattern", ["host copy", "file read", "local copy"])
def test_what_a_profile_lacks_was_not_measured(pattern: str) -> None:
    with pytest.raises(NothingMatches, match=f"'{pattern}' was not measured ") as caught:
        require_match([pattern], [H2D], gpus=2, measured=True)
    assert f"survey --only '{pattern}'" in caught.value.remedy
    with pytest.raises(NothingMatches, match=f"'{pattern}' matches no series ") as caught:
        require_match([pattern], [H2D], gpus=2)
    assert caught.value.remedy.startswith("name another --preset")


def test_file_read_is_a_pattern() -> None:
    read = "file@file:scratch -> pageable@numa:0 by direct-io"
    assert matches_any(texts_of(Workload.parse(read)), ["File read"])
    for other in (f"{read}[depth=4]", read.replace("file@", "file[state=cold]@"), HOST):
        assert not matches_any(texts_of(Workload.parse(other)), ["file read"])
    with pytest.raises(NothingMatches) as caught:
        require_match(["file raed"], texts_of(Workload.parse(read)))
    assert caught.value.remedy.startswith("did you mean 'file read'? nearest: ")


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("pinend", "pinned"),
        ("h2dd copy-engin", "h2d copy-engine"),
        ("host-to-al", "host-to-all"),
        ("zero_copy", "zero-copy"),
    ],
)
def test_words_are_corrected_that_no_path_of_the_machine_has(pattern: str, meant: str) -> None:
    with pytest.raises(NothingMatches) as caught:
        require_match([pattern], [HOST], texts_of(Workload.parse(H2D)))
    assert caught.value.remedy == f"did you mean '{meant}'?"


def test_the_name_of_a_set_matches_every_such_set() -> None:
    plain = [f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine" for gpu in range(2)]
    by_sm = [path.replace("copy-engine", "sm") for path in plain]
    for paths in (plain, by_sm):
        assert matches_any(texts_of(Workload.parse("; ".join(paths))), ["host-to-all"])


def test_several_patterns_are_any_of_them() -> None:
    assert matches_any([D2H], ["sync", "device@gpu:0 -> *"])
    assert matches_any([D2H], [])


def test_a_pattern_that_matches_nothing_says_what_is_near() -> None:
    with pytest.raises(NothingMatches, match="--only 'pined gpu:0'") as error:
        require_match(["pinned", "pined gpu:0"], [H2D, D2H, "pageable@numa:0 by cpu"])
    assert H2D in error.value.remedy


SPOKEN = ["GPU0", "gpu 12", "1 KiB", "28MiB", "host to device", "device to device", "NUMA 3", "H2D"]


@given(
    st.text(st.characters(exclude_characters=f"*?{MARK}"), min_size=1, max_size=40)
    | st.lists(st.sampled_from([*SPOKEN, "file", "x@y", "of"]), min_size=1).map(" ".join)
)
def test_a_text_matches_its_own_words(text: str) -> None:
    assert matches_any([text], [text])
    assert nearest(text, ["", text]) == [text, ""]


def test_a_word_that_looks_like_a_place_matches_names_of_files() -> None:
    assert matches_any(["file@file:/data/gpu0/1KiB -> pinned@numa:0 by cpu"], ["gpu0"])
    assert matches_any(["file@file:/data/gpu0/1KiB -> pinned@numa:0 by cpu"], ["1kib pinned"])


def test_what_is_not_measured_may_be_asked_for_and_is_not_suggested() -> None:
    require_match(["teleport"], [H2D], others=["device -> file by teleport"])
    with pytest.raises(NothingMatches) as caught:
        require_match(["by teleprt"], [H2D], others=["device -> file by teleport"])
    assert caught.value.remedy == f"nearest: {H2D}"


THERE, BACK = "pinned@numa:0 -> device@gpu:0", "device@gpu:0 -> pinned@numa:0"


@pytest.mark.parametrize(
    ("pattern", "selected"),
    [
        (f"{THERE} by copy-engine", [0]),
        (f"{THERE} by copy-engine[api=batch]", [1]),
        (f"{THERE} by copy-engine of 64 MiB", [0]),
        ("pinned@numa:0 <-> device@gpu:0 by copy-engine", [2]),
        (f"{THERE} by copy-engine; {BACK} by copy-engine", [2]),
        ("pinned@numa:0 <-> device@gpu:0 by copy-engine of 64 MiB", [2]),
        ("host-to-all pinned@numa:0 -> device@gpu:0,1 by copy-engine", [3]),
        ("Host-to-all pinned@numa:0 -> device@gpu:0,1 by copy-engine of 64MiB", [3]),
        (f"{THERE} by copy", []),
        (THERE, [0, 1, 2, 3, 4]),
        (f"{THERE} by copy-engine*", [0, 1, 2, 3, 4]),
        ("copy-engine", [0, 1, 2, 3, 4]),
        ("host-to-all copy-engine", [3, 4]),
    ],
)
def test_a_whole_path_selects_itself_alone(pattern: str, selected: list[int]) -> None:
    engine = f"{THERE} by copy-engine"
    known = (
        f"{engine} of 64MiB",
        f"{engine}[api=batch] of 64MiB",
        f"{engine} of 64MiB; {BACK} by copy-engine of 64MiB",
        f"{engine} of 64MiB; pinned@numa:0 -> device@gpu:1 by copy-engine of 64MiB",
        f"{engine}[api=batch]; pinned@numa:0 -> device@gpu:1 by copy-engine[api=batch]",
    )
    texts = [sized_texts_of(Workload.parse(text)) for text in known]
    assert [n for n, each in enumerate(texts) if matches_any(each, [pattern])] == selected


PIECES = [f"{H2D} as list[piece={piece}]" for piece in (131072, 28672)]


@pytest.mark.parametrize(
    ("pattern", "measured", "parts"),
    [
        (
            "list[piece=64KiB]",
            False,
            (
                "matches no series (presets measure list[piece=28KiB], list[piece=128KiB]; ",
                f"waywiser survey --workload '{H2D} as list[piece=64KiB]' measures another one; ",
                "waywiser show FILE --only list --all interpolates these pieces)",
            ),
        ),
        (
            "h2d list[piece=8192",
            True,
            (
                "was not measured (measured are list[piece=28KiB], list[piece=128KiB]; ",
                f"waywiser survey --workload '{H2D} as list[piece=8KiB]' measures another one)",
            ),
        ),
        ("d2h list[piece=8KiB]", True, ("(waywiser survey --only list measures such layouts)",)),
    ],
)
def test_other_settings_of_a_layout_get_those_that_there_are(
    pattern: str, measured: bool, parts: tuple[str, ...]
) -> None:
    texts = [text for path in (*PIECES, H2D, D2H) for text in texts_of(Workload.parse(path))]
    with pytest.raises(NothingMatches) as error:
        require_match([pattern], texts, measured=measured)
    assert str(error.value).endswith("".join(parts))


@pytest.mark.parametrize("pattern", ["gpu:1", "gpu 1", "GPU1", "h2d gpu 1", "pinned -> gpu:1"])
def test_a_place_is_whole_and_may_be_written_as_people_say_it(pattern: str) -> None:
    paths = [f"pinned@numa:0 -> device@gpu:{n} by copy-engine" for n in (0, 1, 10, 11)]
    found = [path for path in paths if matches_any(texts_of(Workload.parse(path)), [pattern])]
    assert found == [paths[1]]


@pytest.mark.parametrize("word, term", sorted(OTHER_NAMES.items()))
def test_other_names_of_terms_are_answered_with_the_term(word: str, term: str) -> None:
    assert term in TERMS and word not in TERMS
    texts = texts_of(Workload.parse("pinned@numa:0 -> device@gpu:0 by copy-engine"))
    with pytest.raises(NothingMatches, match=f"did you mean '{term}'"):
        require_match([word], texts, measured=True)


@pytest.mark.parametrize(
    "pattern, remedy", [("bandwidth", "h2d"), ("d2h  speed gpu:0", "'d2h gpu:0'")]
)
def test_a_quantity_selects_nothing_and_the_message_says_what_to_write(
    pattern: str, remedy: str
) -> None:
    texts = texts_of(Workload.parse("device@gpu:0 -> pinned@numa:0 by copy-engine"))
    with pytest.raises(NothingMatches, match=f"leave this word out, write --only {remedy}"):
        require_match([pattern], texts)


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ("host to device", "h2d"),
        ("Host-to-GPU", "h2d"),
        ("host->device", "h2d"),
        ("device to host", "d2h"),
        ("GPU to GPU", "d2d"),
        ("peer-to-peer", "p2p"),
        ("host to host", "h2h"),
    ],
)
def test_terms_may_be_written_out(written: str, term: str) -> None:
    ends = ("pageable@numa:0", "device@gpu:0", "device@gpu:1")
    texts = [texts_of(Workload.parse(f"{a} -> {b} by sm")) for a in ends for b in ends]
    found = [matches_any(each, [written]) for each in texts]
    assert any(found) and found == [matches_any(each, [term]) for each in texts]


@pytest.mark.parametrize(
    ("pattern", "gpus", "says"),
    [
        (
            "d2h gpu:7",
            2,
            r"--only 'd2h gpu:7': there is no gpu:7 here \(the machine has gpu:0 to gpu:1",
        ),
        ("GPU 12", 1, r"there is no gpu:12 here \(the machine has gpu:0 alone\)"),
        ("device@gpu:3 -> device@gpu:0 by sm", 3, r"there is no gpu:3 here"),
        ("h2d gpu:4", 0, r"there is no gpu:4 here \(the machine has no GPU\)"),
    ],
)
def test_a_gpu_that_is_not_there_is_named(pattern: str, gpus: int, says: str) -> None:
    with pytest.raises(NothingMatches, match=says):
        require_match([pattern], [H2D, D2H], gpus=gpus)


@pytest.mark.parametrize(
    ("pattern", "gpus"), [("pinend gpu:1", 2), ("pinend gpu:0", 1), ("gpu:5", None)]
)
def test_a_gpu_that_is_there_or_may_be_is_not_missed(pattern: str, gpus: int | None) -> None:
    with pytest.raises(NothingMatches, match=r"matches no series|was not measured") as error:
        require_match([pattern], [H2D, D2H], gpus=gpus)
    assert "there is no" not in str(error.value)


def test_the_gpus_of_a_selection_keep_their_numbers() -> None:
    third = H2D.replace("gpu:0", "gpu:3")
    with pytest.raises(NothingMatches) as error:
        require_match(["sync gpu:3"], [third], gpus=1)
    assert "there is no gpu" not in str(error.value)
