"""Compressed profiles are read as they are, in memory, and never more bytes than their header
states."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import profiles
from kept import RESULTS, unpacked
from verb_output import error
from waywiser import cli
from waywiser.profile import Profile
from waywiser.profile.compressed import MOST_BYTES
from waywiser.profile.errors import DamagedProfile, NotAProfile, NotWritable, ProfileError
from waywiser.profile.file_name import profiles_in
from waywiser.profile.header import is_profile
from waywiser.profile.opening import open_writable
from waywiser.profile.writable import WritableProfile

RECORDED = RESULTS / "2026-11-22-check-two-gpus" / "check-1.wwp.xz"

Output = pytest.CaptureFixture[str]

PACK: dict[str, Callable[[bytes], bytes]] = {
    "xz": lzma.compress,
    "gz": gzip.compress,
    "bz2": bz2.compress,
}

VERBS = (
    ["show", "{}"],
    ["show", "{}", "--json"],
    ["report", "{}", "--format", "md", "-o", "-"],
    ["check", "{}"],
    ["topology", "{}"],
    ["export", "{}", "--format", "json", "-o", "-"],
    ["export", "{}", "--format", "csv", "-o", "-"],
    ["compare", "{}", "{}"],
    ["check", "{}", "--baseline", "{}", "--within", "0"],
    ["check", "{}"],
    ["check", "{}", "--json"],
    ["advise", "{}"],
    ["advise", "{}", "--from", "pinned@numa:0", "--to", "device@gpu:0", "--bytes", "64MiB"],
    ["predict", "{}"],
    ["predict", "{}", "-w", f"{profiles.H2D} of 64MiB"],
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiles.write(tmp_path_factory.mktemp("whole") / "node.wwp")


def packed(whole: Path, folder: Path, kind: str, data: bytes | None = None) -> Path:
    file = folder / f"node.wwp.{kind}"
    file.write_bytes(PACK[kind](whole.read_bytes() if data is None else data))
    return file


@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(words[:1] + words[3:4]))
def test_each_verb_says_of_a_compressed_profile_what_it_says_of_the_profile(
    words: list[str], whole: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    plain = unpacked(RECORDED, tmp_path / "plain.wwp")
    file = packed(plain, tmp_path, "xz")
    said = []
    for each in (plain, file):
        code = cli.run([word.format(each) for word in words])
        out, err = capsys.readouterr()
        assert "mistake" not in err
        said.append((code, out.replace(str(each), "FILE"), err.replace(str(each), "FILE")))
        assert not list(temporary.iterdir())
    (code, out, _), (other_code, other_out, _) = said
    assert code in (0, 1, 3), said[0]
    assert other_code == code
    assert words_of(other_out) == words_of(out)


def words_of(text: str) -> list[str]:
    """The words of a text, since the name of a file makes a table wider."""
    return text.replace("node.wwp.xz", "NAME").replace("plain.wwp", "NAME").split()


@pytest.mark.parametrize("kind", PACK)
def test_each_packing_is_read(kind: str, whole: Path, tmp_path: Path) -> None:
    file = packed(whole, tmp_path, kind)
    assert is_profile(file)
    with Profile.open(whole) as plain, Profile.open(file) as profile:
        assert profile.machine == plain.machine
        assert list(profile.visits()) == list(plain.visits())
    with Profile.open_snapshot(file) as profile:
        assert list(profile.visits())


def test_several_streams_are_one_profile(whole: Path, tmp_path: Path) -> None:
    data = whole.read_bytes()
    file = tmp_path / "a.wwp.gz"
    file.write_bytes(gzip.compress(data[:1000]) + gzip.compress(data[1000:]))
    with Profile.open(file) as profile:
        assert profile.machine == profiles.machine()


@pytest.mark.parametrize("kind", PACK)
def test_what_unpacks_to_another_size_is_damaged(kind: str, whole: Path, tmp_path: Path) -> None:
    data = whole.read_bytes()
    for size in (len(data) - 4096, len(data) - 1):
        with pytest.raises(DamagedProfile, match=f"unpacks to {size:,} bytes, and its header"):
            Profile.open(packed(whole, tmp_path, kind, data[:size]))
    with pytest.raises(DamagedProfile, match="unpacks to more bytes, and its header states"):
        Profile.open(packed(whole, tmp_path, kind, data + bytes(50 * 2**20)))


@pytest.mark.parametrize("kind", PACK)
def test_a_file_of_zeros_is_no_profile(kind: str, whole: Path, tmp_path: Path) -> None:
    file = packed(whole, tmp_path, kind, bytes(200 * 2**20))
    with pytest.raises(NotAProfile, match="is compressed, and what is in it is not a profile"):
        Profile.open(file)
    assert not is_profile(file)


def test_more_than_is_unpacked_is_named_with_the_command(whole: Path, tmp_path: Path) -> None:
    data = bytearray(whole.read_bytes()[:100])
    (page,) = struct.unpack_from(">H", data, 16)
    struct.pack_into(">I", data, 28, MOST_BYTES // page + 1)
    with pytest.raises(NotAProfile) as raised:
        Profile.open(packed(whole, tmp_path, "xz", bytes(data)))
    assert f"at most {MOST_BYTES:,} are unpacked" in str(raised.value)
    assert "unpack it with xz -dk" in str(raised.value)


def test_a_dictionary_that_is_too_large_is_an_error(whole: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.wwp.xz"
    compressed = bytearray(lzma.compress(whole.read_bytes()))
    # The size of the dictionary is one byte of the header of the first block (xz format, 5.3.1).
    at = compressed.index(b"\x21\x01", 12)
    compressed[at + 2] = 36  # 1 GiB
    length = (compressed[12] + 1) * 4
    checksum = zlib.crc32(bytes(compressed[12 : 12 + length - 4]))
    compressed[12 + length - 4 : 12 + length] = struct.pack("<I", checksum)
    file.write_bytes(compressed)
    with pytest.raises(DamagedProfile, match="emory"):
        Profile.open(file)


def test_packings_that_are_not_unpacked_are_named_with_the_command(tmp_path: Path) -> None:
    for magic, command in (
        (b"\x04\x22\x4d\x18", "lz4 -d"),
        (b"PK\x03\x04", "unzip"),
        (b"7z\xbc\xaf\x27\x1c", "7z x"),
    ):
        file = tmp_path / "a.wwp"
        file.write_bytes(magic + bytes(500))
        with pytest.raises(NotAProfile, match="is compressed") as raised:
            Profile.open(file)
        assert f"unpack it with {command}" in str(raised.value)


def test_nothing_is_written_to_a_compressed_profile(
    whole: Path, tmp_path: Path, capsys: Output
) -> None:
    file = packed(whole, tmp_path, "xz")
    before = file.read_bytes()
    with pytest.raises(NotWritable, match="is compressed, and not written to"):
        open_writable(file)
    with pytest.raises(ProfileError, match="compressed"):
        WritableProfile.resume(file, {})
    with Profile.open(file) as profile, pytest.raises(Exception, match=r"readonly|read-only"):
        profile._connection.execute("DELETE FROM visit")
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_compressed_profiles_of_a_folder_are_found(whole: Path, tmp_path: Path) -> None:
    for name in ("c.wwp", "b.wwp.gz", "a.wwp.xz", "d.wwp.zst", "e.wwp.json", "f.xz"):
        (tmp_path / name).touch()
    names = [Path(each).name for each in profiles_in(tmp_path)]
    assert names == ["a.wwp.xz", "b.wwp.gz", "c.wwp", "d.wwp.zst"]


@pytest.mark.parametrize("kind", PACK)
def test_a_changed_or_cut_file_is_an_error_of_one_line(
    kind: str, whole: Path, tmp_path: Path, capsys: Output
) -> None:
    data = packed(whole, tmp_path, kind).read_bytes()
    rng, file = random.Random(3), tmp_path / "bad.wwp"
    for _ in range(12):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(8, len(changed))] ^= 1 << rng.randrange(8)
        file.write_bytes(changed)
        try:
            with Profile.open(file) as profile:
                list(profile.visits())
        except ProfileError as raised:
            assert "\n" not in str(raised)
    for _ in range(4):
        file.write_bytes(data[: rng.randrange(8, len(data) - 8)])
        assert "truncated" in error(["show", str(file)], capsys)
