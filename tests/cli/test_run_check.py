"""``check``: the verdict's line, exit codes, and what Prometheus reads."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from analysis.comparison import nodes
from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.health.health_check import health_of, host_health
from waywiser.cli import run
from waywiser.curves.subject import LoadedLink
from waywiser.exchange.exports.metrics_text import escaped
from waywiser.exchange.exports.prometheus import health_metrics
from waywiser.words.records import GpuHealth, Health

Output = pytest.CaptureFixture[str]

SAMPLE = re.compile(
    r"^([a-zA-Z_:][a-zA-Z0-9_:]*)"
    r'\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\}'
    r" (\S+)$"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("check")
    readings = [Health("t", (GpuHealth(0, "GPU-node0-0", {"PCIe replays": n}),)) for n in (0, 2)]
    made = {
        "base": nodes.node(1, gpus=2, blocks=8),
        "same": nodes.node(2, gpus=2, blocks=8),
        "slow": nodes.node(
            3, gpus=2, blocks=8, slow=nodes.slow_host_link(1, 2.0), links={1: LoadedLink(5, 8)}
        ),
        "again": nodes.node(4, gpus=2, blocks=8, slow=nodes.slow_host_link(1, 2.0)),
        "slower": nodes.node(5, gpus=2, blocks=8, slow=nodes.slow_host_link(1, 1.05)),
        "noisy": nodes.node(6, gpus=2, blocks=8, between_blocks=0.12),
        "noisy-too": nodes.node(8, gpus=2, blocks=8, between_blocks=0.12),
    }
    return {
        name: str(nodes.stored(node, folder / f"{name}.wwp", health=readings))
        for name, node in made.items()
    }


def test_the_first_line_is_the_verdict(files: dict[str, str], capsys: Output) -> None:
    assert run(["check", files["same"], "--baseline", files["base"]]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("OK node0: 10 no change; ")
    command = ["check", files["slow"], "--baseline", files["base"], "--repeat", files["again"]]
    assert run(command) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAILED node0: gpu:1 (0000:02:00.0, GPU-node0-1) ran at PCIe 5 x8")
    assert any("50.0% slower" in line or "49.9% slower" in line for line in lines)
    assert any(line.strip() == "note: gpu:0 PCIe replays +2" for line in lines)


def test_a_loss_that_was_not_measured_again_is_inconclusive_and_names_the_commands(
    files: dict[str, str], capsys: Output
) -> None:
    assert run(["check", files["slower"], "--baseline", files["base"]]) == 3
    said = capsys.readouterr().out
    assert said.startswith("INCONCLUSIVE node0: ")
    purpose = "to confirm or refute what is suspected, on node0:"
    assert f"{purpose}\n    waywiser survey --preset check --only" in said
    assert f"waywiser check {files['slower']} --baseline {files['base']} --repeat again" in said
    assert "largest drops:" in said
    assert re.search(
        r"suspected: H2D .*\n +[\d.]+ GB/s before, [\d.]+ GB/s now at .*iB; smallest detect", said
    )


def test_a_baseline_of_another_machine_is_no_failure_and_names_the_command_of_a_new_one(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    other = nodes.stored(nodes.node(9, "node9", gpus=2, blocks=8), tmp_path / "other.wwp")
    assert run(["check", str(other), "--baseline", files["base"]]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("OK node9: the baseline is of another machine (host node0 before, ")
    purpose = "have a baseline of this machine for later checks, while the machine is healthy"
    at = said.index(f"  to {purpose}, on node9:") + 1
    assert said[at] == "    waywiser survey --preset check -o baseline.wwp"


def test_drops_that_are_not_decided_have_a_command(files: dict[str, str], capsys: Output) -> None:
    run(["check", files["noisy-too"], "--baseline", files["noisy"]])
    said = capsys.readouterr().out.splitlines()
    assert any(line.lstrip().split(": ")[0].endswith("not decided") for line in said)
    (command,) = [line for line in said if "for a verdict where it is 'not decided', " in line]
    assert "waywiser survey --preset full --only " in command


@pytest.mark.parametrize("new", ["same", "noisy-too"])
def test_a_baseline_that_scatters_is_made_anew_for_later_checks(
    files: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
    new: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", files[new], "--baseline", files["noisy"]]) == 3
    said = capsys.readouterr().out.splitlines()
    purpose = "have a quieter baseline for later checks, while the machine is healthy"
    at = said.index(f"  to {purpose}, on node0:") + 1
    assert said[at] == "    waywiser survey --preset check -o baseline.wwp"
    assert not any("waywiser check" in line for line in said)


def test_commands_measure_a_survey_that_scatters_again(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", files["noisy"], "--baseline", files["base"]]) == 3
    said = capsys.readouterr().out.splitlines()
    at = said.index("  to find smaller losses, on node0:") + 1
    assert said[at] == "    waywiser survey --preset check -o new.wwp"
    assert said[at + 1] == f"    waywiser check new.wwp --baseline {files['base']}"
    (tmp_path / "new.wwp").write_bytes(Path(files["same"]).read_bytes())
    assert run(shlex.split(said[at + 1])[1:]) == 0


def test_several_baselines_and_a_missing_one(files: dict[str, str], capsys: Output) -> None:
    both = ["--baseline", files["base"], "--baseline", files["same"]]
    assert run(["check", files["slow"], *both]) == 1
    capsys.readouterr()
    assert run(["check", files["slow"]]) == 1
    said = capsys.readouterr().out
    assert said.startswith("FAILED node0: gpu:1 ran at PCIe 5 x8 of 5 x16 under load")
    assert run(["check", files["slow"], "--repeat", files["again"]]) == 2
    assert "name one with --baseline" in capsys.readouterr().err


def test_json_has_everything(files: dict[str, str], capsys: Output) -> None:
    command = ["check", files["slow"], "--baseline", files["base"], "--repeat", files["again"]]
    assert run([*command, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "failed"
    assert document["hosts"][0]["reference"] == "baseline"
    assert document["baseline"]["comparison"]["counts"]["regression"] == 5


def parsed(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """As a scraper reads it: HELP and TYPE before the samples of each name, no sample twice."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    announced: dict[str, set[str]] = {}
    seen = set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, _ = line.split(" ", 3)
            assert name not in found
            announced.setdefault(name, set()).add(what)
            continue
        match = SAMPLE.match(line)
        assert match is not None, line
        name, labels, value = match.groups()
        assert announced[name] == {"HELP", "TYPE"}
        assert (name, labels) not in seen
        seen.add((name, labels))
        pairs = dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', labels))
        found.setdefault(name, []).append((pairs, float(value)))
    return found


def test_metrics_are_what_prometheus_reads(
    files: dict[str, str], tmp_path: Path, capsys: Output
) -> None:
    target = tmp_path / "waywiser.prom"
    options = ["--baseline", files["base"], "--prometheus", str(target)]
    assert run(["check", files["slower"], *options]) == 3
    assert verdicts(target)["suspected"] >= {nodes.h2d(1)} and not verdicts(target)["regression"]
    assert run(["check", files["slow"], *options, "--repeat", files["again"]]) == 1
    assert list(tmp_path.iterdir()) == [target]
    found = parsed(target.read_text())
    status = {labels["status"]: value for labels, value in found["waywiser_check_status"]}
    assert status == {"ok": 0, "failed": 1, "inconclusive": 0}
    ratios = {labels["path"]: value for labels, value in found["waywiser_path_ratio"]}
    assert ratios[nodes.h2d(1)] == pytest.approx(0.5, rel=0.02)
    rates = {
        labels["path"]: value for labels, value in found["waywiser_path_rate_bytes_per_second"]
    }
    assert rates[nodes.h2d(0)] == pytest.approx(nodes.LINK, rel=0.02)
    widths = {labels["uuid"]: value for labels, value in found["waywiser_gpu_pcie_width_lanes"]}
    assert widths == {"GPU-node0-0": 16, "GPU-node0-1": 8}
    ((labels, value),) = found["waywiser_gpu_errors_total"]
    assert (labels["counter"], labels["pci"], value) == ("PCIe replays", "0000:01:00.0", 2)
    losses = {labels["path"]: value for labels, value in found["waywiser_path_detectable_loss"]}
    assert 0.01 < losses[nodes.h2d(0)] < 0.05
    path = ("path", nodes.h2d(0))

    def figure(name: str) -> float:
        (value,) = [value for labels, value in found[name] if path in labels.items()]
        return value

    assert figure("waywiser_path_processes") == figure("waywiser_path_baseline_processes") == 8
    assert 0 < figure("waywiser_path_deviation") < 0.01
    assert figure("waywiser_path_degrees_of_freedom") > 6
    assert 0 <= figure("waywiser_path_p_corrected") <= 1
    for side in ("", "baseline_"):
        assert 0.0005 < figure(f"waywiser_path_{side}process_deviation") < 0.005
    worse = verdicts(target)["regression"]
    assert nodes.h2d(1) in worse and nodes.h2d(0) not in worse


def verdicts(file: Path) -> dict[str, set[str]]:
    """The paths of each verdict in the metrics of a file."""
    found: dict[str, set[str]] = {}
    for labels, value in parsed(file.read_text())["waywiser_path_verdict"]:
        found.setdefault(labels["verdict"], set()).update({labels["path"]} if value else ())
    return found


def test_metrics_go_to_standard_output_alone(files: dict[str, str], capsys: Output) -> None:
    options = ["--baseline", files["base"], "--prometheus", "-"]
    assert run(["check", files["same"], *options]) == 0
    said = capsys.readouterr()
    assert parsed(said.out)["waywiser_gpus"] == [({"host": "node0"}, 2)]
    assert said.err.startswith("OK node0")


def test_one_document_goes_to_standard_output(files: dict[str, str], capsys: Output) -> None:
    options = ["--baseline", files["base"], "--prometheus", "-", "--json"]
    assert run(["check", files["same"], *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--json and --prometheus - both write to standard output" in said.err


def test_an_output_is_asked_for_before_anything_is_measured(
    files: dict[str, str], tmp_path: Path, capsys: Output
) -> None:
    precious = tmp_path / "notes.txt"
    precious.write_text("precious")
    link = tmp_path / "link.prom"
    link.symlink_to(precious)
    for target in (tmp_path / "no" / "m.prom", tmp_path, Path(files["base"]), precious, link):
        assert (
            run(["check", "none.wwp", "--baseline", "none.wwp", "--prometheus", str(target)]) == 2
        )
        assert capsys.readouterr().err.startswith(f"waywiser: error: {target}: ")
    assert precious.read_text() == "precious"


def test_labels_are_escaped() -> None:
    assert escaped('a"b\\c\nd') == r"a\"b\\c\nd"
    assert escaped("\x1b[31mred") == "[31mred"
    node = nodes.node(1, 'ev"il\\\n', gpus=1)
    checkup = check_up(node, [node])
    health = health_of([host_health(node.name, (), ())], baseline=checkup)
    found = parsed(health_metrics(health, node))
    assert found["waywiser_gpus"][0][0]["host"] == r"ev\"il\\\n"


@pytest.mark.parametrize(("expected", "code"), [(2, 0), (3, 1), (8, 1)])
def test_a_profile_with_fewer_gpus_than_expected_fails(
    files: dict[str, str], expected: int, code: int, capsys: Output
) -> None:
    """With a baseline that has as few, and without one."""
    words = ["check", files["same"], "--expect-gpus", str(expected), "--within", "0"]
    assert run([*words, "--baseline", files["base"]]) == code
    said = [capsys.readouterr().out]
    assert (run(words) == 1) is (code == 1)
    said.append(capsys.readouterr().out)
    text = f"2 of {expected} GPUs that are expected"
    assert [text in each for each in said] == [code == 1] * 2
