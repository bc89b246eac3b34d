"""The scripts of ``waywiser --completion``, run by the shells that are here."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from waywiser import cli
from waywiser.cli.call import command
from waywiser.cli.completion import verbs
from waywiser.cli.completion_scripts import SHELLS, VerbWords, completion_script
from waywiser.curves.name import SETS
from waywiser.curves.terms import TERMS
from waywiser.machine.traits import declared_executors, declared_memories
from waywiser.measure.plan.preset import PRESETS

PYTHON = Path(__file__).resolve().parent.parent.parent / "python"

BASH = """
source "$1"; shift
COMP_WORDS=("$@")
COMP_LINE="$*"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_waywiser
printf '%s\\n' "${COMPREPLY[@]}"
"""

ZSH = """
PREFIX=${@[-1]}
CURRENT=$(($# - 1))
words=("${@[2,-1]}")
compdef() { : }
compset() {
    if [[ $2 == '*=' ]]; then PREFIX=${PREFIX#*=}; return; fi
    if [[ $PREFIX == *' '* ]]; then before="${PREFIX% *} "; PREFIX=${PREFIX##* }; fi
}
show() {
    for each in "$@"; do if [[ $each == $PREFIX* ]]; then print -r -- "$before$each"; fi; done
}
compadd() { shift; show "$@" }
_describe() { show "${(P@)3%%:*}" }
_files() { if [[ $1 == -g ]]; then setopt extendedglob; show ${~2}(N) *(/N); else show *(N); fi }
source "$1"
_waywiser
"""

CASES = [
    (("sur",), {"survey"}),
    (("help", "comp"), {"compare"}),
    (("survey", "--pre"), {"--preset"}),
    (("survey", "--preset", ""), set(PRESETS)),
    (("survey", "--preset", "q"), {"quick"}),
    (("show", "node.wwp", "--only", "h2"), {"h2d", "h2h"}),
    (("show", "node.wwp", "--only", "'h2d copy"), {"h2d copy-engine"}),
    (("survey", "--only", "nvl"), {"nvlink"}),
    (("survey", "--only", "pin"), {"pinned"}),
    (("survey", "--only", "host-to"), {"host-to-all"}),
    (("compare", "--fail-on", ""), {"regression", "suspected", "never"}),
    (("show", "n"), {"node.wwp", "nodes"}),
    (("show", "old"), set()),
    (("compare", "node.wwp", "my"), {"my node.wwp"}),
    (("show", "other"), set()),
    (("import", "other"), {"other.txt"}),
    (("export", "node.wwp", "--format", "p"), {"parquet"}),
    (("import", "other.txt", "--format", "os"), {"osu"}),
    (("--completion", ""), set(SHELLS)),
    (("--ver",), {"--version"}),
    (("cl",), {"cluster"}),
    (("cluster", "j"), {"join"}),
    (("cluster", "join", "--node"), {"--node-name"}),
    (("cluster", "survey", "--hos"), {"--hostfile"}),
    (("survey", "--hos"), set()),
    (("cluster", "survey", "--pre"), set()),
    (("survey", "--seed", ""), set()),
]


def shell(name: str) -> str:
    """The path of a shell, or a skip that names it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def script(name: str, folder: Path) -> Path:
    file = folder / f"script.{name}"
    file.write_text(completion_script(name, verbs(command())))
    return file


def output(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with profiles and something else."""
    inside = tmp_path / "inside"
    (inside / "nodes").mkdir(parents=True)
    for name in ("node.wwp", "old.wwp.xz", "my node.wwp", "other.txt"):
        (inside / name).touch()
    return inside


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_bash_completes(words: tuple[str, ...], expected: set[str], folder: Path) -> None:
    bash = shell("bash")
    file = script("bash", folder.parent)
    said = output(bash, "--norc", "-c", BASH, "bash", file, "waywiser", *words, cwd=folder)
    assert set(filter(None, said.splitlines())) == expected


# The keys are no control characters that the terminal acts on while bash runs `show_line`.
SHOW_LINE = """
stty -echo
bind 'set enable-bracketed-paste off'
show_line() { printf '<%s>END\\n' "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0; }
bind -x '"\\C-xl": show_line'
"""

LINES = [
    ("sur", "survey "),
    ("show node", "show node"),
    ("show node:", "show node:1.wwp "),
    ("show node:1", "show node:1.wwp "),
    ("show dir:", "show dir:1/"),
    ("show dir:1/", "show dir:1/x.wwp "),
    ("show a@", "show a\\@b.wwp "),
    ("show back~", "show back~up.wwp "),
    ("show my", "show my\\ node.wwp "),
    ("show my\\ no", "show my\\ node.wwp "),
    ("show 'my", "show 'my node.wwp' "),
    ('show "node:', 'show "node:1.wwp" '),
    ("show ~/node:", "show ~/node:1.wwp "),
    ("show ~/node.", "show ~/node.wwp "),
    ("survey --scratch ~/dir:", "survey --scratch ~/dir:1/"),
    ("report --output=node:", "report --output=node:1.wwp "),
    ("check node:1.wwp --baseline ~/node.", "check node:1.wwp --baseline ~/node.wwp "),
    ("show --only pinned@numa:0 --al", "show --only pinned@numa:0 --all "),
    ("show --only 'numa:0 copy-e", "show --only 'numa:0 copy-engine' "),
    ("show --only numa:0\\ copy-e", "show --only numa:0\\ copy-engine "),
    ("show --only=numa:0\\ copy-e", "show --only=numa:0\\ copy-engine "),
    ("survey --preset=st", "survey --preset=standard "),
    ("survey --preset=", "survey --preset="),
]
"""What is typed after ``waywiser``, and the line after the key that completes."""


def completed(bash: str, script: Path, lines: list[str], folder: Path) -> list[str]:
    """The lines as an interactive bash has them after a tab, in its home folder."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        variables = {
            "HOME": str(folder),
            "TERM": "dumb",
            "PS1": "",
            "INPUTRC": "/dev/null",
            "HISTFILE": "",
        }
        os.execve(bash, ["bash", "--norc", "--noprofile", "-i"], {**os.environ, **variables})

    def read_until(mark: bytes) -> bytes:
        read = b""
        while mark not in read:
            read += os.read(terminal, 4096)
        return read

    try:
        ready = f"{SHOW_LINE}source {shlex.quote(str(script))}\necho REA''DY\n"
        os.write(terminal, ready.encode())
        read_until(b"READY\r\n")
        found = []
        for line in lines:
            os.write(terminal, f"waywiser {line}\t\x18l".encode())
            shown = read_until(b">END").partition(b">END")[0]
            found.append(shown.rpartition(b"<waywiser ")[2].decode())
        return found
    finally:
        os.close(terminal)
        os.waitpid(process, 0)


def test_bash_completes_what_is_typed(folder: Path) -> None:
    """Colons, equals signs, tildes, blanks and quotes, in a bash with a terminal."""
    bash = shell("bash")
    (folder / "dir:1").mkdir()
    for name in ("node:1.wwp", "dir:1/x.wwp", "a@b.wwp", "back~up.wwp"):
        (folder / name).touch()
    typed, expected = zip(*LINES, strict=True)
    file = script("bash", folder.parent)
    assert completed(bash, file, list(typed), folder) == list(expected)


def test_zsh_completes(folder: Path) -> None:
    zsh = shell("zsh")
    file = script("zsh", folder.parent)
    for words, expected in CASES:
        plain = [word.removeprefix("'") for word in words]  # zsh keeps the quote elsewhere
        said = output(zsh, "-f", "-c", ZSH, "zsh", file, "waywiser", *plain, cwd=folder)
        assert set(said.splitlines()) == expected, words


def test_fish_completes(folder: Path) -> None:
    fish = shell("fish")
    file = script("fish", folder.parent)
    for words, expected in CASES:
        line = " ".join(("waywiser", *words))
        ask = f"source {file}; complete -C {json.dumps(line)}"
        said = output(fish, "--no-config", "-c", ask, cwd=folder)
        assert {each.partition("\t")[0].rstrip("/") for each in said.splitlines()} == expected, line


@pytest.mark.parametrize("name", SHELLS)
def test_the_shell_takes_the_script(name: str, tmp_path: Path) -> None:
    assert output(shell(name), "-n", script(name, tmp_path), cwd=tmp_path) == ""


@pytest.mark.parametrize("name", SHELLS)
def test_every_command_option_and_word_is_in_the_script(name: str) -> None:
    text = completion_script(name, verbs(command()))
    words = (*TERMS, *SETS, *PRESETS, *declared_executors(), *declared_memories())
    options = {
        option for verb in verbs(command()) for each in verb.options for option in each.names
    }
    named = {f"-l {option[2:]}" if name == "fish" else option for option in options if option[2:]}
    assert [word for word in (*words, *named) if word not in text] == []
    assert all(word in text for verb in verbs(command()) for word in verb.name.split())


def of(name: str) -> VerbWords:
    (found,) = [verb for verb in verbs(command()) if verb.name == name]
    return found


def test_every_option_of_a_command_is_known() -> None:
    survey = {name for option in of("survey").options for name in option.names}
    assert survey >= {"--only", "-o", "--output", "--dry-run", "-h", "--help"}
    check = {name: each.values for each in of("check").options for name in each.names}
    assert check["--baseline"] is not None and check["--baseline"].kind == "profiles"
    assert check["--keep"] is None
    assert of("help").arguments.words[0] == "survey"


def test_a_script_is_made_without_the_native_library() -> None:
    code = (
        "import sys; from waywiser import cli; code = cli.run(['--completion', 'bash']);"
        "print([name for name in sys.modules if name.startswith('waywiser._')], file=sys.stderr);"
        "sys.exit(code)"
    )
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "complete -F _waywiser waywiser" in done.stdout
    assert done.stderr.strip() == "[]"


def test_another_shell_is_not_supported(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--completion", "tcsh"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "there is no completion for 'tcsh' (write one of bash, zsh, fish)" in said.err
