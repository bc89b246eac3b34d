"""Ends commands at random moments, and checks that nothing is lost and nothing is left.

    python benchmarks/kill.py survey --count 100 --fake build/dev
    python benchmarks/kill.py check --count 100 --fake build/dev
    python benchmarks/kill.py verbs --count 5

``survey`` kills surveys over the fake GPU (SIGKILL, or to some of them SIGTERM), and resumes them:
every visit that was stored is stored afterwards, and no file has its final name without being
whole. ``check`` does the same to a check with all its outputs. ``verbs`` sends SIGINT, SIGTERM and
SIGHUP to every verb that reads or writes files: each ends with 130, or as it would have ended.
Whatever the end, no process, no shared memory and no file is left, or the next run removes it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from waywiser.profile import Profile, ProfileError

WAYWISER = (sys.executable, "-m", "waywiser")
FAKE = "latency=1;event=1"
SURVEY = (
    *("survey", "--preset", "quick", "--sizes", "8:64KiB", "-o", "a.wwp"),
    *("--only", "pinned@numa:0 -> device@gpu:? by copy-engine"),
)
GENTLE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
OUTPUTS = {"r.html": b"</html>", "e.csv": b"", "j.xml": b">", "p.json": b"}", "s.wwp": b""}
"""What verbs write, with the ends of these files."""

END_SECONDS = 120.0
"""Seconds for a command to end after a signal, on a busy machine."""


class Campaign:
    """Commands in one folder, with a seed for the moments at which they are ended."""

    def __init__(self, folder: Path, fake: Path | None, seed: int) -> None:
        self.folder = folder
        self.dice = random.Random(seed)
        self.wrong: list[str] = []
        self.ends: Counter[str] = Counter()
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._environment = {**os.environ, "TMPDIR": str(self.temporary)}
        if fake:
            paths = filter(None, (str(fake.resolve()), os.environ.get("PYTHONPATH", "")))
            self._environment |= {
                "WAYWISER_FAKE": FAKE,
                "WAYWISER_NATIVE": "waywiser_fake._native",
                "PYTHONPATH": os.pathsep.join(paths),
            }

    def start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*WAYWISER, *words],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def run(self, words: Sequence[str]) -> tuple[int, str]:
        """The exit code and the messages of a whole command."""
        return self._finish(self.start(words))

    def end(self, words: Sequence[str], number: signal.Signals, after: float) -> tuple[int, str]:
        """The same of a command that gets a signal after some seconds; one that can be caught not
        while Python itself starts, before the first line of the command."""
        process = self.start(words)
        while number != signal.SIGKILL and process.poll() is None and not catches_signals(process):
            time.sleep(0.001)
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        process.send_signal(number)
        return self._finish(process)

    def require(self, condition: bool, what: str) -> None:
        """Notes what is wrong."""
        if not condition:
            self.wrong.append(what)
            print(f"WRONG: {what}", flush=True)

    def require_no_processes(self, what: str) -> None:
        """Waits a little: a worker ends just after its supervisor."""
        end = time.monotonic() + END_SECONDS
        while (found := self._processes()) and time.monotonic() < end:
            time.sleep(0.05)
        self.require(not found, f"{what}: processes {found} are left")

    def _processes(self) -> list[int]:
        mark = f"TMPDIR={self.temporary}".encode()
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                    found.append(int(entry))
        return found

    def _finish(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        try:
            _, err = process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
            self.require(False, f"{process.args}: did not end")
        return process.returncode, err


def shared_memory() -> set[str]:
    """The folders of launches of ranks."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("waywiser-ranks-")}


def catches_signals(process: subprocess.Popen[str]) -> bool:
    """Whether the command has its handlers of signals."""
    with suppress(OSError):
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def visits_of(file: Path) -> list[object]:
    """The stored visits; none without a file. Raises `ProfileError` for one that is not whole."""
    if not file.exists():
        return []
    with Profile.open(file) as profile:
        return list(profile.visits())


def is_whole(file: Path, end: bytes) -> bool:
    """Whether an output is complete."""
    if file.suffix == ".wwp":
        with suppress(ProfileError):
            return bool(visits_of(file))
        return False
    content = file.read_bytes()
    return bool(content) and content.rstrip().endswith(end)


def kill_surveys(campaign: Campaign, count: int) -> None:
    """Kills surveys of one profile until it is complete, then of the next one."""
    file, before = campaign.folder / "a.wwp", []
    words: tuple[str, ...] = SURVEY
    for number in range(count):
        sent = signal.SIGKILL if campaign.dice.random() < 0.7 else campaign.dice.choice(GENTLE)
        code, err = campaign.end(words, sent, campaign.dice.uniform(0.0, 3.0))
        what = f"survey {number}, {sent.name}"
        campaign.ends[f"{sent.name} {code}"] += 1
        campaign.require(code in (0, 130, -sent.value), f"{what}: code {code}: {err[-300:]}")
        campaign.require("Traceback" not in err, f"{what}: {err[-2000:]}")
        if sent != signal.SIGKILL:
            campaign.require(code >= 0, f"{what}: ended by the signal")
        campaign.require_no_processes(what)
        try:
            after = visits_of(file)
        except ProfileError as error:
            campaign.require(False, f"{what}: {error}")
            after = []
        campaign.require(after[: len(before)] == before, f"{what}: a finished visit is lost")
        before = after
        words = ("survey", "--resume", "-o", "a.wwp") if file.exists() else SURVEY
        if code == 0:
            file.unlink()
            before, words = [], SURVEY
    code, err = campaign.run(words)
    campaign.require(code == 0, f"the last survey: {err[-300:]}")
    before = visits_of(file)
    campaign.require(bool(before), "the last survey has no visits")
    campaign.require_no_processes("the last survey")
    require_clean(campaign, {"a.wwp"})


def kill_checks(campaign: Campaign, count: int) -> None:
    """Kills checks with all their outputs."""
    campaign.run(SURVEY)
    shutil.copyfile(campaign.folder / "a.wwp", campaign.folder / "base.wwp")
    words = (
        *("check", "a.wwp", "--baseline", "base.wwp", "--within", "0"),
        *("--prometheus", "node.prom", "--junit", "node.xml"),
    )
    code, _ = campaign.run(words)
    outputs = [campaign.folder / name for name in ("node.prom", "node.xml")]
    whole = [file.read_bytes() for file in outputs]
    visits = visits_of(campaign.folder / "a.wwp")
    for number in range(count):
        for file in outputs:
            if campaign.dice.random() < 0.5:
                file.unlink(missing_ok=True)
        sent = signal.SIGKILL if campaign.dice.random() < 0.7 else campaign.dice.choice(GENTLE)
        ended, err = campaign.end(words, sent, campaign.dice.uniform(0.0, 2.0))
        what = f"check {number}, {sent.name}"
        campaign.ends[f"{sent.name} {ended}"] += 1
        campaign.require(ended in (code, 130, -sent.value), f"{what}: code {ended}: {err[-300:]}")
        campaign.require("Traceback" not in err, f"{what}: {err[-2000:]}")
        for file, content in zip(outputs, whole, strict=True):
            if file.exists():
                found = file.read_bytes()
                ends = content[-20:] == found[-20:] and len(found) > len(content) // 2
                campaign.require(ends, f"{what}: {file.name} is half written")
        campaign.require_no_processes(what)
    campaign.require(campaign.run(words)[0] == code, "the last check ends otherwise")
    campaign.require(visits_of(campaign.folder / "a.wwp") == visits, "the profile changed")
    require_clean(campaign, {"a.wwp", "base.wwp", "node.prom", "node.xml"})


def end_verbs(campaign: Campaign, count: int) -> None:
    """Sends signals to every verb."""
    campaign.run(SURVEY)
    shutil.copyfile(campaign.folder / "a.wwp", campaign.folder / "base.wwp")
    kept = {"a.wwp", "base.wwp"}
    verbs: dict[str, tuple[str, ...]] = {
        "topology": (),
        "show": ("a.wwp",),
        "report": ("a.wwp", "-o", "r.html"),
        "export": ("a.wwp", "--format", "csv", "-o", "e.csv"),
        "compare": ("base.wwp", "a.wwp"),
        "check": ("a.wwp", "--baseline", "base.wwp", "--within", "0", "--junit", "j.xml"),
        "advise": ("a.wwp",),
        "predict": ("a.wwp",),
        "simulate": ("a.wwp", "--preset", "check", "-o", "s.wwp"),
        "doctor": (),
        "survey": ("--dry-run",),
    }
    for verb, others in verbs.items():
        usual, _ = campaign.run((verb, *others))
        for name in OUTPUTS:
            (campaign.folder / name).unlink(missing_ok=True)
        for number in range(count):
            sent = campaign.dice.choice(GENTLE)
            after = campaign.dice.uniform(0.0, 1.5)
            code, err = campaign.end((verb, *others), sent, after)
            what = f"{verb} {number}, {sent.name} after {after:.2f} s"
            campaign.ends[f"{verb} {code}"] += 1
            campaign.require(code in (130, usual), f"{what}: code {code}: {err[-300:]}")
            campaign.require("Traceback" not in err, f"{what}: {err[-2000:]}")
            campaign.require_no_processes(what)
            require_clean(campaign, kept | OUTPUTS.keys(), what)
            for name, end in OUTPUTS.items():
                file = campaign.folder / name
                if file.exists():
                    campaign.require(is_whole(file, end), f"{what}: {name} is half written")
                    file.unlink()


def require_clean(campaign: Campaign, names: set[str], what: str = "at the end") -> None:
    """Nothing else is in the folder, and nothing in that for temporary files."""
    found = {each.name for each in campaign.folder.iterdir()} - names - {"tmp"}
    campaign.require(not found, f"{what}: files are left: {sorted(found)}")
    temporary = [each.name for each in campaign.temporary.iterdir()]
    campaign.require(not temporary, f"{what}: temporary files are left: {temporary}")


def main() -> int:
    """The command."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("what", choices=("survey", "check", "verbs"))
    arguments.add_argument("--count", type=int, default=100)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--fake", type=Path, help="the folder with the module of the fake GPU")
    given = arguments.parse_args()
    for number in GENTLE:  # what starts this may ignore them, as nohup, and children inherit that
        signal.signal(number, signal.SIG_DFL)
    campaigns = {"survey": kill_surveys, "check": kill_checks, "verbs": end_verbs}
    with tempfile.TemporaryDirectory(prefix="waywiser-kill-") as folder:
        campaign = Campaign(Path(folder), given.fake, given.seed)
        shared = shared_memory()
        campaigns[given.what](campaign, given.count)
        end = time.monotonic() + END_SECONDS  # another program may have ranks meanwhile
        while (left := shared_memory() - shared) and time.monotonic() < end:
            time.sleep(0.5)
        campaign.require(not left, f"shared memory is left: {sorted(left)}")
    print(json.dumps({"ends": campaign.ends, "wrong": campaign.wrong}, indent=2))
    return bool(campaign.wrong)


if __name__ == "__main__":
    sys.exit(main())
