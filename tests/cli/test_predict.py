"""``waywiser predict``: what it prints, keeps and rejects."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import profiles
from verb_output import Output, error, output
from waywiser.exchange.imports.profiles import import_files
from waywiser.model import machine_model
from waywiser.model.export import EXPORTS
from waywiser.model.published import SwitchesError, parse_switches
from waywiser.model.texts import FORMS
from waywiser.notebook.predict_call import SCHEMA
from waywiser.profile import Profile
from waywiser.words import WaywiserError

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parents[1] / "exchange" / "imports" / "data"
H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
SWITCHES = "on-socket=8; on-node=8,16; off-node=8"


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(profiles.write(tmp_path / "a.wwp"))


@pytest.fixture
def of_messages(tmp_path: Path) -> str:
    names = ("ping_pong", "mult_pong", "node_pong", "maxrate", "memcpy", "memcpy_mult")
    import_files([DATA / f"benchpress_{name}.out" for name in names], tmp_path / "m.wwp")
    return str(tmp_path / "m.wwp")


@pytest.mark.parametrize("first", [["predict"], ["predict", "-w", f"{H2D} of 2MiB"]])
def test_a_model_is_fitted_once(
    first: list[str],
    file: str,
    derived_folder: Path,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = Path(file).read_bytes()
    text = output([first[0], file, *first[1:]], capsys)
    assert Path(file).read_bytes() == before
    assert len(list(derived_folder.glob("*.model"))) == 1
    monkeypatch.setattr(machine_model, "fit_curves", None)
    assert output([first[0], file, *first[1:]], capsys) == text
    monkeypatch.undo()
    assert output([first[0], file, *first[1:]], capsys) == text


def test_the_model_names_what_is_not_identified(file: str, capsys: Output) -> None:
    short, whole = (output(["predict", file, *more], capsys) for more in ([], ["--all"]))
    for text in (short, whole):
        assert "Not identified: latency and bandwidth of " in text
    assert H2D in whole
    assert FORMS["neighbours"] in whole
    assert len(whole) > len(short)


def test_the_model_as_json(file: str, capsys: Output) -> None:
    found = json.loads(output(["predict", file, "--json"], capsys))
    assert {each["text"] for each in found["model"]["curves"]} >= {H2D}
    assert found["model"]["capacities"]["capacities"]


def test_the_prediction_as_json(file: str, capsys: Output) -> None:
    text = f"{H2D} of 2MiB; {profiles.D2H} of 2MiB"
    found = json.loads(output(["predict", file, "--json", "-w", text], capsys))
    assert found["schema"] == SCHEMA
    assert found["interval"]["low"] < found["span"] < found["interval"]["high"]
    assert [each["bytes"] for each in found["transfers"]] == [2**21, 2**21]
    for each in found["transfers"]:
        assert each["interval"]["low"] < each["seconds"] < each["interval"]["high"]
    assert found["created"].startswith("20")
    assert isinstance(found["is_known"], bool)


def test_predict_compares_with_what_was_measured(file: str, capsys: Output) -> None:
    words = ["predict", file, "--compare", "-w", f"{H2D} of 1MiB"]
    assert "Measured: " in output(words, capsys)
    assert "within its interval" in output(words, capsys)
    words[-1] = f"{H2D} of 3MiB"
    assert "the profile has no measurement of it" in output(words, capsys)


def test_a_changed_machine_is_compared_with_the_measured_one(file: str, capsys: Output) -> None:
    words = ["predict", file, "--compare", "-w", f"{H2D} of 1MiB", "--set", "PCIe to gpu:*=999GB/s"]
    assert re.search(
        r"Measured without the change: .*; with it the prediction is [+-]", output(words, capsys)
    )


def test_several_answers_come_one_after_the_other(file: str, capsys: Output) -> None:
    words = ["predict", file, "-w", f"{H2D} of 1MiB"]
    alone = [output(words, capsys), output(["predict", file, "--validate"], capsys)]
    assert output([*words, "--validate"], capsys) == "".join(alone)
    found = json.loads(output([*words, "--validate", "--json"], capsys))
    assert set(found) == {"schema", "prediction", "validation"}
    assert found["prediction"] == json.loads(output([*words, "--json"], capsys))


def test_predict_says_from_when_the_profile_is(file: str, capsys: Output) -> None:
    with Profile.open(file) as profile:
        day = profile.created[:10]
    assert f"measured on {day}" in output(["predict", file, "-w", f"{H2D} of 1MiB"], capsys)


def test_results_of_another_tool_are_imported_and_not_measured(
    of_messages: str, capsys: Output
) -> None:
    words = [of_messages, "-w", "pinned[node=0,socket=0]@rank:0 -> "
             "pinned[node=1,socket=0]@rank:2 by mpi of 16"]  # fmt: skip
    text = output(["predict", *words], capsys)
    assert "The profile was imported on " in text
    assert "imported on " in output(["predict", of_messages], capsys)


def test_messages_by_the_published_rule(of_messages: str, capsys: Output) -> None:
    words = ["predict", of_messages, "--rule", "published", "--switches", SWITCHES]
    text = output(words, capsys)
    assert "alpha, s" in text
    assert "rendezvous" in text
    found = json.loads(output([*words, "--json"], capsys))
    assert {line["protocol"] for line in found["lines"]} >= {"rendezvous", ""}


@pytest.mark.parametrize("format", EXPORTS)
def test_the_model_is_exported(file: str, capsys: Output, tmp_path: Path, format: str) -> None:
    words = ["export", file, "--for", format]
    text = output(words, capsys)
    assert text
    target = str(tmp_path / "exported")
    assert output([*words, "-o", target], capsys) == ""
    assert Path(target).read_text() == text
    assert "exists" in error([*words, "-o", target], capsys)
    assert Path(target).read_text() == text


def test_validation_prints_each_class(file: str, capsys: Output) -> None:
    assert "held out" in output(["predict", file, "--validate"], capsys)
    found = json.loads(output(["predict", file, "--validate", "--json"], capsys))
    assert {row["what"] for row in found["rows"]} == {"size, link"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("predict FILE --rule unknown", "'unknown' is no rule"),
        ("predict FILE --switches off-node=8", "has no messages between ranks"),
        ("predict FILE --rule published --validate", "has no messages between ranks"),
        ("predict FILE --rule published", "has no messages between ranks"),
        ("export FILE --for models", "--for does not know 'models'"),
        ("export FILE --for model --summary", "--for model has one form"),
        ("export FILE --for model -o b.wwp", "is no profile"),
        ("predict missing.wwp", "there is no such file"),
        ("predict FILE --compare", "--workload is missing"),
        ("predict FILE --messages 2", "--workload is missing"),
        ("predict missing.wwp -w 'x by sm of 1'", "'x by sm of 1'"),
        (f"predict FILE --set x=1 -w '{H2D} of 1MiB'", "is not a change"),
        (
            f"predict FILE --set gpus=0 -w '{H2D} of 1MiB'",
            "--set 'gpus=0' is not a number of GPUs (write gpus=N, N from 1 to 1024)",
        ),
        ("predict FILE --messages x -w y", "--messages 'x' is not a whole number"),
    ],
)
def test_what_cannot_be_done_is_one_line(words: str, says: str, file: str, capsys: Output) -> None:
    given = [file if word == "FILE" else word for word in shlex.split(words)]
    assert says in error(given, capsys)


@pytest.mark.parametrize(
    "switches",
    ["nowhere=8", "off-node", "off-node=", "off-node=16,8", "off-node=1,2,3", "off-node=x",
     "a b off-node=8", "off-node=-8", "=8", "off-node=" + "9" * 400],
)  # fmt: skip
def test_switches_that_are_none_are_one_line(
    of_messages: str, capsys: Output, switches: str
) -> None:
    words = ["predict", of_messages, "--rule", "published", "--switches", switches]
    assert len(error(words, capsys)) < 1000


@settings(max_examples=200)
@given(
    text=st.one_of(
        st.text(max_size=30),
        st.lists(
            st.sampled_from(
                ["off-node", "on-node", "=", ",", ";", " ", "16KiB", "8", "device", "-1", "1e9"]
            ),
            max_size=8,
        ).map("".join),
    )
)
def test_any_text_of_switches_is_read_or_rejected(text: str) -> None:
    try:
        found = parse_switches(text)
    except WaywiserError as caught:
        assert isinstance(caught, SwitchesError) or caught.remedy
        return
    for sizes in found.values():
        assert list(sizes) == sorted(set(sizes))
        assert all(size >= 0 for size in sizes)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(max_size=40).filter(lambda text: text.strip() and text[0] != "-"))
def test_any_workload_is_one_line(file: str, capsys: Output, text: str) -> None:
    error(["predict", file, "-w", text], capsys)


def test_a_prediction_from_a_kept_model_imports_little(
    file: str, derived_folder: Path, capsys: Output
) -> None:
    output(["predict", file], capsys)
    script = (
        "import sys; from waywiser import cli;"
        f"code = cli.run(['predict', {file!r}, '-w', {f'{H2D} of 2MiB'!r}]);"
        "heavy = ('scipy', 'matplotlib', 'jinja2', 'waywiser._native');"
        "bad = [name for name in heavy if name in sys.modules];"
        "print(code, bad, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "0 []"
