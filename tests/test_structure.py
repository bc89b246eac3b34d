"""The measures of `scripts/structure` count what they promise, and the source tree keeps to limits
of its structure."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

pytest.importorskip("grimp")

from structure_measures import (
    cpp_code,
    cpp_counts,
    health_types,
    imports,
    options,
    python_code,
    sample_trace,
    supervision,
)
from tree import ROOT

STRUCTURE = ROOT / "scripts" / "structure"

MODULE = '''"""Text.

More text.
"""

import os  # a comment

NAMES = (
    "a",
)
"""What a name is."""


# A comment.
def first(a: int) -> str:
    """Text."""
    text = """two
lines"""

    def inner() -> None: ...

    return text


class Thing:
    @property
    def second(
        self,
    ) -> int:
        return 1
'''


def package(folder: Path, name: str, modules: dict[str, str]) -> Path:
    """A package with these modules; returns its folder."""
    for module, text in {"__init__": "", **modules}.items():
        path = folder / name / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    return folder / name


STATED = """
from enum import IntEnum
from typing import Literal

from other import Grade

Health = Literal["ok", "bad"]
Unused = Literal["a"]


class Level(IntEnum): ...


class SlowFault:
    status: Health
    verdict: Level
    name: str


class Night:
    status: Grade
    standing: tuple[str, ...]
"""


def test_types_of_statuses_and_findings_are_counted_where_they_are_declared() -> None:
    code = {
        Path("own.py"): STATED,
        Path("other.py"): "Grade = Literal[1, 2]\nHealth = Literal[1]\n",
    }
    assert health_types.status_types(code) == {"own.Health", "own.Level", "other.Grade"}
    assert health_types.finding_types(code) == {"SlowFault"}


def test_a_type_that_its_package_exports_is_counted_once() -> None:
    code = {
        Path("words/level.py"): "Level = Literal[1, 2]\n",
        Path("words/__init__.py"): "from thing.words.level import Level\n",
        Path("one.py"): "from thing.words import Level\n\n\nclass One:\n    status: Level\n",
        Path("two.py"): "from thing.words.level import Level\n\n\nclass Two:\n    status: Level\n",
    }
    assert health_types.status_types(code) == {"level.Level"}


def test_code_lines_are_no_comments_no_docstrings_and_not_blank() -> None:
    assert python_code.code_lines(MODULE) == 15
    assert python_code.code_lines("") == 0
    assert python_code.code_lines('"""Text."""\n# A comment.\n') == 0


def test_a_python_function_has_all_lines_from_def_to_its_last() -> None:
    found = {each.name: each.lines for each in python_code.functions(MODULE)}
    assert found == {"first": 8, "inner": 1, "second": 4}


def test_entries_are_modules_and_packages(tmp_path: Path) -> None:
    here = package(tmp_path, "thing", {"one": "", "inner/two": ""})
    for name in ("one.pyi", "py.typed", "lib/library.so"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).touch()
    assert python_code.entries(here) == ["__init__.py", "inner", "one.py"]


CPP = r"""// A comment {
#include "a.hpp"
#define OPEN \
    {

namespace a {
enum class Kind { one, two };

template <typename T = void>
struct Thing : Base<T> {
    int value{1};
    /* a comment
       of two lines { */
    explicit Thing(int a)
        : first_{a}, second_(std::vector<int>{a}) {
        const char* text = "} // text";
    }
    bool operator==(const Thing&) const = default;
};

const Kind kAll[] = {Kind::one, Kind::two};

auto Thing::find(std::function<void(int)> call) const
    -> std::vector<int> {
    each([&](int a) {
        if (a == '{') {
            call(1'000);
        }
    });
    return {};
}
}  // namespace a

extern "C" {
int main() { return 0; }
}
"""


def test_a_cpp_function_has_all_lines_from_its_declaration_to_its_last_bracket() -> None:
    found = [(each.name, each.lines) for each in cpp_code.functions(CPP)]
    assert found == [("Thing", 4), ("Thing::find", 9), ("main", 1)]


def test_code_lines_of_cpp_are_no_comments_and_not_blank() -> None:
    assert cpp_code.code_lines(CPP) == 28
    assert cpp_code.code_lines("// text\n\n/* a\nb */\n") == 0
    assert cpp_code.code_lines('f("/* no comment");\ng("*/");\n') == 2


TYPES = r"""// struct Comment {
const char* text = "struct Text {";
#define STRUCT struct Directive {
class Forward;
enum class Later : int;
struct c_name { int a; };
using Alias = std::vector<int>;
union Either { int a; };

template <class T, typename U = int>
class Outer final : public Base<T>, std::enable_shared_from_this<Outer<T>> {
    friend class Friend;
    friend struct Forward;
    enum class Kind : std::uint8_t { one, two };
    enum Old { three };
    struct Later;
    struct alignas(64) Inner {
        struct { int a; } unnamed;
    };
};
template <>
struct Outer<int> { int a; };

struct Outer::Later
{
};

class [[nodiscard]] Checked : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct stat status{};
struct Made make(struct Given given) {
    struct Local { int a; };
    return {};
}
template <class Call>
void call(Call call) {}
"""


def test_types_are_definitions_of_classes_structures_and_enumerations() -> None:
    assert cpp_counts.types(TYPES) == [
        ("struct", "c_name"),
        ("class", "Outer"),
        ("enum", "Kind"),
        ("enum", "Old"),
        ("struct", "Inner"),
        ("struct", ""),
        ("struct", "Outer::Later"),
        ("class", "Checked"),
        ("struct", "Local"),
    ]
    assert cpp_counts.types("") == []


MUTEXES = r"""#include <mutex>
// std::mutex comment;
const char* text = "std::mutex text;";
class SpinningMutex final : public std::mutex {};
class Thing {
    friend class SpinningMutex;
    void wait(std::unique_lock<std::mutex>& lock, std::mutex& passed);
    mutable std::mutex mutex_;  // guards the next
    std::shared_mutex readers_, writers_;
    host::SpinningMutex spinning_{};
    std::recursive_mutex several_[2];
    alignas(64) static inline std::timed_mutex timed_;
};
static std::mutex of_file;
std::mutex& get() {
    static std::mutex local;
    const std::lock_guard<std::mutex> lock(local);
    const std::scoped_lock both(local, of_file);
    return local;
}
using Guard = std::mutex;
"""


def test_mutexes_are_variables_and_no_locks_of_one() -> None:
    names = ["mutex_", "readers_", "writers_", "spinning_", "several_", "timed_"]
    assert cpp_counts.mutexes(MUTEXES) == [*names, "of_file", "local"]


WAITS = r"""
bool poll(const Condition& condition) {
    while (!condition()) {
        if (late()) std::this_thread::sleep_for(kNap);
        do {
            host::relax();
        } while (early());
    }
}
void nap() { std::this_thread::yield(); }
struct Job {
    bool wait(std::unique_lock<std::mutex>& held, double seconds) {
        return changed_.wait_for(held, seconds);
    }
    void wait() {
        std::unique_lock lock(mutex_);
        change->wait(lock, [&] { return ended(); });
    }
    void block(const Block& block) {
        // changed_.wait(lock); std::this_thread::yield();
        log("yield()");
        stream.wait(block);
        gpu::wait(stream, event);
        gpu::relax_capture();
        wait(lock_, 1);
    }
    void sleep_for(double seconds);
};
void caller(Job& job) {
    for (;;) job.wait();
}
"""


def test_waits_are_functions_that_sleep_or_wait_with_a_lock() -> None:
    assert cpp_counts.waits(WAITS) == ["poll", "nap", "wait", "wait"]


DECIDERS = r"""
enum class ListMethod { copies, batch };
struct Choice {
    enum class Method { plain, chunked };
    Method method = Method::plain;
};
ListMethod method_of(int a) {
    return a > 0 ? ListMethod::batch : ListMethod::copies;
}
Choice chunked(Choice choice) {
    choice.method = transfer::Choice::Method::chunked;
    return choice;
}
ListChoice pipeline() { return {.method = ListMethod::batch}; }
Choice pass() { return with(Choice::Method::plain); }

bool is_plain(const Choice& choice) {
    // return Choice::Method::plain;
    log("Choice::Method::plain");
    return choice.method == Choice::Method::plain || Choice::Method::chunked != choice.method;
}
void follow(ListMethod method) {
    switch (method) {
        case ListMethod::copies: return;
        case ListMethod::batch: break;
    }
    const ListMethod same = method;
    Choice::Method other;
}
std::size_t GroupPlan::bytes() { return GroupPlan::bytes_of(1) + GroupPlan::kMost; }
Direction way() { return Direction::in; }
Choice by_another() { return method_of(1); }
"""


def test_deciders_are_functions_that_give_a_method() -> None:
    assert cpp_counts.deciders(DECIDERS) == ["method_of", "chunked", "pipeline", "pass"]


def test_imports_in_functions_and_for_types_alone_count(tmp_path: Path) -> None:
    modules = {
        "top/a": "from shapes.low import b\n",
        "top/c": "def f():\n    import shapes.low.b\n",
        "low/b": (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shapes.base import d\n"
        ),
        "base/d": "import shapes\nimport shapes.base.e\n",
        "base/e": "",
    }
    package(tmp_path, "shapes", modules)
    found = imports.module_imports(tmp_path, "shapes")
    assert found == {
        ("shapes.top.a", "shapes.low.b"),
        ("shapes.top.c", "shapes.low.b"),
        ("shapes.low.b", "shapes.base.d"),
        ("shapes.base.d", "shapes.base.e"),
    }
    assert imports.package_imports(found) == {("top", "low"), ("low", "base")}


def test_layers_are_the_longest_chain() -> None:
    assert imports.layers([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]) == 4
    assert imports.layers([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]) == 3
    assert imports.layers([]) == 1


def test_a_circle_is_a_group_of_modules_that_import_one_another() -> None:
    chain = [("a", "b"), ("b", "c"), ("a", "c")]
    assert imports.circles(chain) == []
    circles = imports.circles([*chain, ("c", "b"), ("x", "y"), ("y", "z"), ("z", "x"), ("z", "a")])
    assert circles == [["b", "c"], ["x", "y", "z"]]


def test_an_option_is_stated_where_it_is_declared_named_or_passed_on() -> None:
    text = (
        "class Options:\n"
        "    deadline: float | None = None\n"
        "class Plan:\n"
        "    deadline_seconds: float = 0\n"
        "def survey(deadline: Annotated[float, '--deadline'] = 1.0) -> None:\n"
        "    send(until, deadline)\n"
        "    Options(deadline=deadline)\n"
        "    Plan(deadline_seconds=options.deadline)\n"
        "    NAMES = ['deadline', 'the deadline']\n"
        "def send(until, deadline: float, *, deadline_seconds=None): ...\n"
    )
    assert options.places(text, "deadline") == [2, 5, 7, 9, 10]
    assert options.places("x = options.deadline\n", "deadline") == []


SUPERVISOR = r"""
import os, signal, subprocess, time

def start(command):
    subprocess.run(command, timeout=time.monotonic())
    return subprocess.Popen(command)

def end(process, pid, number=signal.SIGTERM):
    process.kill()
    os.kill(pid, 0)
    os.kill(pid, number)
    os.killpg(0, number)
    clock = time.monotonic
    return os.fork()

LINE = f"{1}\n".encode() + b"\n"
TEXT = "\n", b"a\n"
"""


def test_places_that_supervise_start_or_signal_a_process() -> None:
    assert supervision.supervised(SUPERVISOR) == [6, 11, 12, 14]
    assert supervision.line_ends(SUPERVISOR) == [16]
    assert supervision.clock_readings(SUPERVISOR) == [5, 13]


def test_contract_layers_are_the_lines_of_all_contracts_of_layers(tmp_path: Path) -> None:
    contracts = '[[tool.importlinter.contracts]]\nlayers = ["a", "b | c"]\n'
    file = tmp_path / "pyproject.toml"
    file.write_text(f'{contracts}[[tool.importlinter.contracts]]\nname = "d"\n')
    assert imports.contract_layers(file) == 2


class Held:
    """An object of another package than the one that is traced."""


def test_the_trace_sees_what_functions_take_and_return(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_trace, "PACKAGE", __name__.partition(".")[0])
    monkeypatch.setattr(sample_trace, "VERDICT", "Verdict")

    class Wide:
        def __init__(self, time: float) -> None:
            self.time = time

    class Verdict: ...

    def take(first: list[Held], *, second: dict[str, Wide]) -> Verdict:
        return Verdict()

    def traced(time: float) -> dict[str, dict[str, object]]:
        trace = sample_trace.Trace()
        previous = sys.getprofile()
        sys.setprofile(trace)
        try:
            take([Held()], second={"a": Wide(time)})
            take([], second={"a": Wide(3.0)})
        finally:
            sys.setprofile(previous)
        return {name.rpartition(".")[2]: found for name, found in trace.by_type().items()}

    once, same, other = traced(1.0), traced(1.0), traced(2.0)
    assert set(once) == {"Held", "Wide", "Verdict"}
    assert once == same
    assert {name for name in once if once[name] != other[name]} == {"Wide"}


def test_a_word_that_is_no_tree_is_reported() -> None:
    done = subprocess.run(
        [sys.executable, STRUCTURE, "--json", "no-such-tree"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        "no-such-tree is neither a folder nor a commit of this repository\n"
    )
    assert "Traceback" not in done.stderr


def test_the_tree_is_within_its_limits() -> None:
    done = subprocess.run(
        [sys.executable, STRUCTURE, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_figure_above_its_limit_is_named_with_both_numbers() -> None:
    loader = SourceFileLoader("structure_script", str(STRUCTURE))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    structure = module_from_spec(spec)
    loader.exec_module(structure)
    figures = {"circles": 2, "layers": 10}
    assert structure.exceeded(figures, {"circles": 2, "layers": 10}) == []
    assert structure.exceeded(figures, {"circles": 1, "layers": 12}) == [
        "circles of modules: 2, and scripts/structure.toml allows 1"
    ]
    with pytest.raises(KeyError):
        structure.exceeded(figures, {"no_figure": 1})
