"""Writes ``docs/api.md``: calls, classes, tables and errors of the public Python API, from their
signatures and docstrings.

    python docs/api.py > docs/api.md

A test checks that the page is current. The sources are read and not imported, except for the
columns of tables.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "python"
WIDTH = 96

ARGUMENTS = {r"^Args:$": "Arguments:\n", r"^ {4}(\w+): ": r"- `\1`: ", r"^ {8}": "  "}
"""How the arguments in a docstring become a list."""

Documented = ast.FunctionDef | ast.ClassDef


def tree(module: str) -> ast.Module:
    """The source of a module; of a native one its stub."""
    path = SOURCES.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path.with_suffix(".pyi"), path / "__init__.py")
    return ast.parse(next(file for file in files if file.exists()).read_text())


def members(body: list[ast.stmt]) -> dict[str, Documented]:
    """The public functions and classes of a body by name; of overloads the last."""
    found = {}
    for node in body:
        if isinstance(node, Documented) and not node.name.startswith("_"):
            found[node.name] = node
    return found


def text_of(node: Documented | ast.Module) -> str:
    """The docstring as Markdown."""
    return markdown(ast.get_docstring(node) or "")


def markdown(text: str) -> str:
    """A docstring as Markdown; of a section ``Args:`` the arguments become a list."""
    plain = re.sub(r"``(.+?)``", r"`\1`", inspect.cleandoc(text))
    for pattern, replacement in ARGUMENTS.items():
        plain = re.sub(pattern, replacement, plain, flags=re.MULTILINE)
    return plain


def signature(name: str, node: ast.FunctionDef, *, bound: bool = False) -> str:
    """The call as it is declared; ``bound`` leaves ``self`` out. Parameters are on lines of their
    own if one line is too short."""
    found = list(_parameters(node.args))[1 if bound else 0 :]
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({', '.join(found)}){returned}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in found), f"){returned}"])


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    places = [*arguments.posonlyargs, *arguments.args]
    required = [None] * (len(places) - len(arguments.defaults))
    for argument, default in zip(places, [*required, *arguments.defaults], strict=True):
        yield _parameter(argument, default)
    if arguments.vararg:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    if default is None:
        return f"{argument.arg}{kind}"
    equals = " = " if kind else "="
    return f"{argument.arg}{kind}{equals}{ast.unparse(default)}"


def documented(node: Documented, name: str) -> Iterator[str]:
    """A call or a class: its heading, how it is called, what it does, its members."""
    yield f"### {name}\n"
    if isinstance(node, ast.FunctionDef):
        yield f"```python\n{signature(name, node)}\n```\n"
        yield f"{text_of(node)}\n"
        return
    yield f"{text_of(node)}\n"
    initial = next((each for each in node.body if _is_initial(each)), None)
    attributes = dict(_attributes(node.body))
    if isinstance(initial, ast.FunctionDef):
        attributes |= dict(_attributes(initial.body, initial.args.args))
        if initial.args.kwonlyargs and not initial.args.args[1:]:
            yield f"```python\n{signature(name, initial, bound=True)}\n```\n"
    methods = []
    for each, function in members(node.body).items():
        assert isinstance(function, ast.FunctionDef)
        if _is_property(function):
            kind = ast.unparse(function.returns) if function.returns else ""
            attributes[each] = (kind, text_of(function))
        else:
            methods.append(function)
    if attributes:
        yield "| attribute | type | |\n|---|---|---|"
        for each, (kind, text) in attributes.items():
            yield f"| `.{each}` | {_code(kind)} | {' '.join(text.split())} |"
        yield ""
    for method in methods:
        yield f"```python\n{signature(f'.{method.name}', method, bound=True)}\n```\n"
        yield f"{text_of(method)}\n"


def _is_initial(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__init__"


def _is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(each).endswith("property") for each in node.decorator_list)


def _code(kind: str) -> str:
    return f"`{kind}`".replace("|", "\\|") if kind else ""


def _attributes(
    body: list[ast.stmt], arguments: Sequence[ast.arg] = ()
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Public attributes with their types and the texts below them; ``arguments`` are those of the
    function that sets them."""
    kinds = {each.arg: ast.unparse(each.annotation) for each in arguments if each.annotation}
    for node, below in zip(body, [*body[1:], None], strict=True):
        text = _text(below)
        if isinstance(node, ast.AnnAssign):
            name = ast.unparse(node.target).removeprefix("self.")
            kind = ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and text:
            name, kind = node.targets[0].attr, kinds.get(ast.unparse(node.value), "")
        else:
            continue
        if not name.startswith("_"):
            yield name, (kind, text)


def _text(node: ast.stmt | None) -> str:
    """A string that stands alone, as Markdown; empty for anything else."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return markdown(str(node.value.value))
    return ""


def columns(title: str, module: str, name: str, more: str = "") -> Iterator[str]:
    """The columns of a table with their types, and what is said of them below ``name`` and, if it
    is given, below ``more``."""
    types: Mapping[str, type] = getattr(import_module(module), name)
    listed = ", ".join(f"`{each}` {kind.__name__}" for each, kind in types.items())
    yield f"**Columns of `{title}`**: {listed}.\n"
    body = tree(module).body
    for node, below in zip(body, [*body[1:], None], strict=True):
        if {name, more} & {*_names(node)} and (text := _text(below)):
            yield f"{text}\n"


def _names(node: ast.stmt) -> list[str]:
    """The names that a statement assigns."""
    if isinstance(node, ast.AnnAssign):
        return [ast.unparse(node.target)]
    return list(map(ast.unparse, node.targets)) if isinstance(node, ast.Assign) else []


def alias(module: str, name: str) -> str:
    """The type that a name stands for."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and name in _names(node):
            return f"`{name}` is `{ast.unparse(node.value)}`.\n"
    raise KeyError(name)


def errors(*modules: str) -> Iterator[str]:
    """The errors of modules: names, bases, the first line of what they say."""
    yield "| error | bases | |\n|---|---|---|"
    for module in modules:
        for name, node in members(tree(module).body).items():
            bases = [ast.unparse(base) for base in getattr(node, "bases", ())]
            if isinstance(node, ast.ClassDef) and _is_error(name, bases):
                text = " ".join(text_of(node).split("\n\n")[0].split())
                listed = ", ".join(f"`{base}`" for base in bases)
                yield f"| `{module}.{name}` | {listed} | {text} |"
    yield ""


def _is_error(name: str, bases: list[str]) -> bool:
    return any(base.endswith(("Error", "Exception")) for base in bases)


INTRODUCTION = """\
# Python API

Examples are in [Profiles in Python](python.md) and [Copies](transfer.md). This page is made of
signatures and docstrings: `python docs/api.py > docs/api.md`.
"""

CALLS = (
    *("open", "survey", "show", "report", "check", "compare", "advise", "predict", "tune", "trace"),
    *("doctor", "import_", "export", "cluster_survey", "cluster_join", "cluster_show"),
    *("simulate", "topology", "fleet"),
)

PROFILE = "waywiser.notebook.profile_view"
COMPARISON = "waywiser.notebook.comparison_view"
MACHINE = "waywiser.notebook.machine_view"
TABLE = "waywiser.notebook.data_table"
SURVEY = "waywiser.notebook.survey_call"
POLICY = "waywiser.analysis.policy.table"
ADVICE = "waywiser.analysis.policy.advice"
DECISIONS = "waywiser.analysis.policy.decision_table"
FIELDS = "waywiser.machine.machine"

RESULT = "waywiser.notebook.verb_result"
ALIASES = (
    (RESULT, "FileName"),
    (COMPARISON, "Side"),
    (SURVEY, "OnSurveyProgress"),
    ("waywiser.notebook.cluster_call", "OnLine"),
    ("waywiser.notebook.export_call", "Output"),
)

CLASSES = (
    (RESULT, "VerbResult"),
    (PROFILE, "ProfileView"),
    ("waywiser.notebook.health_view", "HealthView"),
    (COMPARISON, "ComparisonView"),
    (MACHINE, "MachineView"),
    (TABLE, "DataTable"),
    (SURVEY, "SurveyProgress"),
    (SURVEY, "SurveyWatcher"),
    ("waywiser.notebook.tune_call", "TuneWatcher"),
    *((POLICY, name) for name in ("Policy", "PolicyClass", "PolicyRow", "NextBest", "MethodCosts")),
    (POLICY, "Fingerprint"),
    *((ADVICE, name) for name in ("Advice", "AdvisedMethod", "CopyRequest")),
    *((DECISIONS, name) for name in ("Method", "MethodTime", "CopyKind")),
    *((DECISIONS, name) for name in ("DecisionTable", "SizeDecision")),
    ("waywiser.analysis.policy.code_lines", "CodeLine"),
    *((FIELDS, name) for name in ("Machine", "Package", "NumaNode", "StatedAccess", "Cache")),
    *((FIELDS, name) for name in ("Gpu", "PcieLink", "NvLink", "FilePlace")),
)

COLUMNS = {
    "ProfileView": (
        ("profile.headline()", PROFILE, "HEADLINE_TYPES"),
        ("profile.series", "waywiser.curves.series_rows", "SERIES_TYPES"),
        ("profile.curve(path)", PROFILE, "CURVE_TYPES"),
        ("profile.samples", "waywiser.profile.sample_rows", "TYPES", "COLUMNS"),
    ),
    "HealthView": (("health.references", "waywiser.notebook.health_view", "RESULT_TYPES"),),
    "ComparisonView": (("comparison.paths", COMPARISON, "PATH_TYPES"),),
    "MachineView": (
        ("machine.numa", MACHINE, "NUMA_TYPES"),
        ("machine.gpus", MACHINE, "GPU_TYPES"),
        ("machine.peaks", MACHINE, "PEAK_TYPES"),
    ),
}
"""Tables of a class: how each is written, the types of its columns, another name with a text."""

ERRORS = (
    PROFILE,
    "waywiser.notebook.curve_figure",
    TABLE,
    "waywiser.notebook.optional_package",
    COMPARISON,
    "waywiser.analysis.health.check",
    "waywiser.notebook.report_call",
    "waywiser.notebook.export_call",
    "waywiser.notebook.cluster_call",
    "waywiser.notebook.unread_files",
    "waywiser.analysis.policy.errors",
    "waywiser.profile.errors",
    "waywiser.measure.survey_run",
    "waywiser.machine.capture",
)
"""Modules whose errors the calls raise."""

COPIES = (
    "waywiser._transfer",
    *(
        f"waywiser.transfer.{name}"
        for name in (
            "arrays",
            "context",
            "open_files",
            "operations",
            "prefetching",
            "transfer_info",
        )
    ),
)
"""Modules of the calls of `waywiser.transfer`; the last one that has a name documents it."""

LOADING = "waywiser.transfer.torch"
PATCHING = "waywiser.transfer.torch_patch"
OF_NUMPY = "waywiser.transfer.numpy"
CHECKPOINTS = {
    "SnapshotStager": "waywiser.transfer.dcp_stager",
    "SafetensorsWriter": "waywiser.transfer.dcp_storage",
    "SafetensorsReader": "waywiser.transfer.dcp_storage",
}
"""Classes of `waywiser.transfer.dcp`, and where each is."""
LOADING_ERRORS = (
    LOADING,
    "waywiser.transfer.checkpoint",
    "waywiser.transfer.safetensors_header",
)
"""Modules of the errors of `LOADING`."""


def document() -> str:
    """The page."""
    return "\n".join([INTRODUCTION, *_profiles(), *_errors(), *_copies()]).rstrip() + "\n"


def _profiles() -> Iterator[str]:
    yield "## waywiser\n"
    public = members(tree("waywiser").body)
    for name in CALLS:
        yield from documented(public[name], f"waywiser.{name}")
    for module, name in ALIASES:
        yield alias(module, name)
    yield "## What the calls return\n"
    for module, name in CLASSES:
        yield from documented(members(tree(module).body)[name], name)
        for table in COLUMNS.get(name, ()):
            yield from columns(*table)


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    base = members(tree("waywiser.errors").body)["WaywiserError"]
    yield from documented(base, "waywiser.WaywiserError")
    yield from errors(*ERRORS)


def _copies() -> Iterator[str]:
    yield "## waywiser.transfer\n"
    known: dict[str, Documented] = {}
    for module in COPIES:
        known |= members(tree(module).body)
    names = [name for name in exported("waywiser.transfer") if name in known]
    for name in sorted(names, key=lambda each: isinstance(known[each], ast.ClassDef)):
        yield from documented(known[name], f"transfer.{name}")
    loading = members(tree(LOADING).body) | members(tree(PATCHING).body)
    for name in exported(LOADING):
        node = loading.get(name)
        if node is not None and not name.endswith("Error"):
            yield from documented(node, f"transfer.torch.{name}")
    of_numpy = members(tree(OF_NUMPY).body)
    for name in exported(OF_NUMPY):
        if name in of_numpy:
            yield from documented(of_numpy[name], f"transfer.numpy.{name}")
    for name, module in CHECKPOINTS.items():
        yield from documented(members(tree(module).body)[name], f"transfer.dcp.{name}")
    yield "### Errors of waywiser.transfer\n"
    yield from errors("waywiser.transfer.errors", *LOADING_ERRORS)


def exported(module: str) -> list[str]:
    """``__all__`` of a module."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and "__all__" in _names(node):
            found: list[str] = ast.literal_eval(node.value)
            return found
    raise KeyError("__all__")


if __name__ == "__main__":
    print(document(), end="")
