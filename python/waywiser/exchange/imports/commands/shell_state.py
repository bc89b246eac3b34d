"""What the lines of a text have changed for the commands below them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise

from waywiser.exchange.imports.commands.lasting_changes import is_lasting_change
from waywiser.exchange.imports.commands.launch_state import is_setting
from waywiser.exchange.imports.commands.prompts import Prompt
from waywiser.exchange.imports.commands.shell_words import expanded, folder_in

STATE_VERBS = frozenset(
    {
        "export", "declare", "typeset", "unset", "setenv", "unsetenv", "set", "module", "ml",
        "source", ".", "cd", "pushd", "popd", "ulimit", "conda", "mamba", "micromamba", "spack",
    }
)  # fmt: skip
"""Commands that change the shell itself."""
_INTERACTIVE = frozenset({"bash", "sh", "zsh", "csh", "tcsh", "ksh", "dash"})
_WITH_A_SHELL = frozenset(
    ("runuser", "docker", "podman", "singularity", "apptainer", "enroot", "kubectl", "oc", "srun",
     "flux", "qsub", "bsub")
)  # fmt: skip
"""Commands that begin a shell if their last word is one."""
_KEEPS = _INTERACTIVE | {"salloc", "srun", "newgrp"}
_VALUED = re.compile(r"-[bcDEeFIiJLlmOopQRSWwtNnAqPCG]$")
"""Options of ssh and Slurm whose value is the next word."""
_UNKNOWN = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
"""A variable without a known value, as of a folder that is the same for all runs of a job."""
MOST_SHELLS = 50
MOST_CHANGES = 100


class Shell:
    """One shell: its variables, modules, folder, host and limits."""

    def __init__(self, entered: str = "") -> None:
        self.entered = entered
        """The command that began it."""
        self.variables: dict[str, str] = {}
        """All that are known: some only for the words of later commands."""
        self.exported: set[str] = set()
        self.once: set[str] = set()
        """The variables that a trace shows before a command, which alone has them."""
        self.modules: list[str] = []
        self.host = ""
        self.name = ""
        """The environment that its prompt shows."""
        self.limits: dict[str, str] = {}
        self.exports_all = False

    def environment(self) -> dict[str, str]:
        """The exported variables."""
        return {
            name: self.variables[name] for name in sorted(self.exported & self.variables.keys())
        }

    def settings(self) -> set[str]:
        """The settings of a command that come from the shell, without its environment."""
        stated = {"host": self.host, "env": self.name, "shell": self.entered}
        return {
            *(f"module={each}" for each in self.modules),
            *(f"ulimit{name}={value}" for name, value in self.limits.items()),
            *(f"{name}={value}" for name, value in stated.items() if value),
        }

    def inherit(self, other: Shell) -> None:
        """Takes over what a shell gives to one that it begins on the same host."""
        self.variables, self.exported = dict(other.variables), set(other.exported)
        self.modules, self.limits = list(other.modules), dict(other.limits)
        self.host, self.name = other.host, other.name

    def at_prompt(self, prompt: Prompt) -> None:
        """Takes from a prompt what it shows of the shell."""
        if prompt.is_trace:
            return
        self.host = prompt.host or self.host
        self.name = prompt.name
        folder = prompt.folder.rstrip("/") or prompt.folder
        if folder and not folder.startswith(("~", "/")):
            known = self.variables.get("PWD", "")
            folder = known if posixpath.basename(known) == folder else folder
        if folder:
            self.variables["PWD"] = folder

    def take(self, words: Sequence[str], is_trace: bool) -> None:
        """Applies what one simple command changes."""
        verb, *others = words
        match verb:
            case "export" | "declare" | "typeset":
                self._export(verb, others)
            case "set" if others[:1] in (["-a"], ["+a"]) or others[1:2] == ["allexport"]:
                self.exports_all = others[0][0] == "-"
            case "set" if len(others) > 1 and re.fullmatch(r"-\w*x\w*", others[0]):
                self._assign(f"{others[1]}={' '.join(others[2:])}", exported=True)
            case "setenv" if others:
                self._assign(f"{others[0]}={' '.join(others[1:])}", exported=True)
            case "unset" | "unsetenv":
                for name in others:
                    self.variables.pop(name, None)
            case "module" | "ml":
                self._load([each for each in others if not each.startswith("-")])
            case "conda" | "mamba" | "micromamba" | "spack" if others:
                self._load_environment(verb, others)
            case "source" | "." if others:
                self.modules.append(f"source {others[0]}")
            case "cd" | "pushd" | "popd":
                self._enter(verb, others)
            case "ulimit" if others[1:]:
                self.limits[others[0]] = others[1]
            case _ if all("=" in word for word in words):
                for each in words:
                    self._assign(each, exported=self.exports_all, once=is_trace)

    def _export(self, verb: str, words: Sequence[str]) -> None:
        flags = [each for each in words if re.fullmatch(r"[-+]\w+", each)]
        names = [each for each in words if each not in flags]
        if any(re.fullmatch(r"-\w*n\w*|\+\w*x\w*", each) for each in flags):
            self.exported -= {each.partition("=")[0] for each in names}
            return
        exported = verb == "export" or any("x" in each for each in flags)
        for each in names:
            self._assign(each, exported=exported)

    def _assign(self, text: str, *, exported: bool, once: bool = False) -> None:
        name, separator, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            return
        if separator:
            self.variables[name] = expanded(value, self.variables)
        if exported or (is_setting(name) and name.isupper() and "_" in name):
            self.exported.add(name)
            (self.once.add if once else self.once.discard)(name)

    def _load(self, words: Sequence[str]) -> None:
        if words[:1] and words[0] in ("purge", "reset"):
            self.modules = []
        elif words[:1] and words[0] in ("unload", "rm", "del"):
            self.modules = [each for each in self.modules if not _is_any_of(each, words[1:])]
        elif words[:1] and words[0] in ("swap", "switch"):
            kept = [each for each in self.modules if not _is_any_of(each, words[1:])]
            self.modules = [*kept, *words[-1:]]
        elif words[:1] and words[0] in ("list", "avail", "use", "show", "spider", "av", "save"):
            return
        else:
            loaded = words[1:] if words[:1] and words[0] in ("load", "add") else words
            self.modules += [each for each in loaded if each not in self.modules]

    def _load_environment(self, verb: str, words: Sequence[str]) -> None:
        kind = "spack" if verb == "spack" else "conda"
        names = [f"{kind} {each}" for each in words[1:] if not each.startswith("-")]
        if words[0] == "load":
            self.modules += [each for each in names if each not in self.modules]
        elif words[0] in ("activate", "deactivate", "unload"):
            gone = names if words[0] == "unload" and names else []
            self.modules = [
                each
                for each in self.modules
                if not (_is_any_of(each, gone) if gone else each.startswith(f"{kind} "))
            ]
            self.modules += (names[-1:] or [f"{kind} base"]) if words[0] == "activate" else []

    def _enter(self, verb: str, words: Sequence[str]) -> None:
        known = self.variables.get("PWD", "")
        back = verb == "popd" or words[:1] == ["-"]
        target = self.variables.get("OLDPWD", "") if back else words[0] if words else "~"
        self.variables["OLDPWD"] = known
        folder = target if back else folder_in(known, expanded(target, self.variables))
        self.variables["PWD"] = _UNKNOWN.sub(r"(\1)", folder)

    def ran(self) -> None:
        """A command that ran takes with it what only it was given."""
        for name in self.once:
            self.variables.pop(name, None)
        self.once = set()


def _is_any_of(module: str, names: Sequence[str]) -> bool:
    """Whether a module is one of these, which may be named without its version."""
    return module in names or re.split("[/@]", module, maxsplit=1)[0] in names


class Session:
    """The shells of a text, of which the last one reads what is typed, and what they changed."""

    def __init__(self) -> None:
        self._shells = [Shell()]
        self._changes: list[str] = []
        """Commands that changed the machine, or what runs read."""

    @property
    def shell(self) -> Shell:
        return self._shells[-1]

    def settings(self) -> set[str]:
        """The settings of a command that come from its shell and from all earlier changes."""
        return {*self.shell.settings(), *(f"after={each}" for each in self._changes)}

    def all_settings(self) -> tuple[str, ...]:
        """The same with the exported variables that can change what is measured."""
        exported = self.shell.environment().items()
        own = {f"{name}={value}" for name, value in exported if is_setting(name)}
        return tuple(sorted({*self.settings(), *own}))

    def take(self, words: Sequence[str], is_trace: bool, file: str = "") -> None:
        """Applies what one simple command changes; ``file`` is where its output goes."""
        verb = words[0].rpartition("/")[2]
        if verb in ("exit", "logout"):
            del self._shells[-1]
            self._shells = self._shells or [Shell()]
        elif is_lasting_change(words, file):
            change = " ".join([*words, *((">", file) if file else ())])
            if change not in self._changes and len(self._changes) < MOST_CHANGES:
                self._changes.append(change)
        elif begins_shell(words):
            inner = Shell(self.shell.entered if verb in _KEEPS else " ".join(words))
            if verb in _KEEPS:
                inner.inherit(self.shell)
            self._shells = [*self._shells, inner][-MOST_SHELLS:]
        else:
            self.shell.take(words, is_trace)


def begins_shell(words: Sequence[str]) -> bool:
    """Whether a command begins a shell that reads what is typed below it."""
    verb = words[0].rpartition("/")[2]
    others = [each for each in words[1:] if not re.match(r"-|\w+=", each)]
    if verb in _INTERACTIVE:
        return not others and "-c" not in words
    if verb == "ssh":
        return len(_plain(words)) == 1
    if verb in ("su", "newgrp"):
        return "-c" not in words
    if verb == "sudo":
        return bool({"-i", "-s"} & set(words)) or (bool(others) and begins_shell(others))
    if verb == "salloc":
        return not _plain(words)
    if verb in ("singularity", "apptainer") and others[:1] == ["shell"]:
        return True
    last = words[-1].rpartition("/")[2]
    return verb in _WITH_A_SHELL and last in _INTERACTIVE


def _plain(words: Sequence[str]) -> list[str]:
    """The words that are no options and no values of options."""
    return [
        each
        for before, each in pairwise(words)
        if not each.startswith("-") and not _VALUED.fullmatch(before)
    ]
