"""Tables of options: what the command line, Python and profiles make of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import msgspec
import pytest

from waywiser.cli.call import command
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.measure.option import given, options_of, stored
from waywiser.measure.plan.preset import Request
from waywiser.measure.scope import MachineSelection
from waywiser.measure.simulate_options import SimulateOptions
from waywiser.measure.survey_options import AnySurveyOptions, OptionError, SurveyOptions
from waywiser.measure.survey_request import request_of, selection_of
from waywiser.measure.tune.targets import TuneRequest
from waywiser.measure.tune_options import TuneOptions

TABLES: dict[str, Any] = {"survey": SurveyOptions, "tune": TuneOptions, "simulate": SimulateOptions}


@pytest.mark.parametrize("verb", TABLES)
def test_the_command_line_has_the_options_of_the_table(verb: str) -> None:
    params = {each.name: each for each in command().commands[verb].params}
    for name, option in options_of(TABLES[verb]).items():
        found = params[name]
        assert found.help == option.text
        if option.is_argument:
            assert found.param_type_name == "argument" and found.metavar == option.metavar
        else:
            assert found.opts == [*filter(None, [option.short]), option.name]


@pytest.mark.parametrize("verb", TABLES)
def test_every_number_has_bounds(verb: str) -> None:
    hints = get_type_hints(TABLES[verb])
    numbers = {name for name, hint in hints.items() if {int, float} & {hint, *_parts(hint)}}
    bounded = {name for name, option in options_of(TABLES[verb]).items() if option.bounds}
    assert numbers == bounded


def _parts(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__args__", ())


def test_what_is_stored_has_a_field() -> None:
    parts: dict[type, dict[str, type]] = {
        SurveyOptions: {"request": Request, "selection": MachineSelection},
        TuneOptions: {"request": TuneRequest, "selection": MachineSelection},
        SimulateOptions: {"request": Request},
    }
    for table, structs in parts.items():
        for option in options_of(table).values():
            if option.stored:
                struct = structs[option.stored.part]
                assert option.stored.field in {f.name for f in msgspec.structs.fields(struct)}


def test_all_of_a_stored_request_is_an_option() -> None:
    """What nobody can ask for is not stored; what is asked for is not forgotten."""
    found = {option.stored for option in options_of(SurveyOptions).values() if option.stored}
    of_request = {each.field for each in found if each.part == "request"}
    of_selection = {each.field for each in found if each.part == "selection"}
    # One option says both where memory is limited, and one whether a folder is named.
    assert {f.name for f in msgspec.structs.fields(Request)} == of_request | {"memory_bytes"}
    fields_of_selection = {f.name for f in msgspec.structs.fields(MachineSelection)}
    assert fields_of_selection == of_selection | {"scratch_named"}


def test_what_is_not_given_is_the_default_of_what_is_stored() -> None:
    assert request_of(SurveyOptions()) == Request()
    found = selection_of(SurveyOptions(scratch="/tmp"))
    assert found == MachineSelection(scratch="/tmp", scratch_named=True)
    assert selection_of(TuneOptions("a.wwp")) == MachineSelection()


def test_what_is_given_is_stored() -> None:
    options = SurveyOptions(only=("h2d",), deadline=9, memory="1MiB", file=("/x",), seed=0)
    assert given(options).keys() == {"only", "deadline", "memory", "file", "seed"}
    assert stored(options, "request") == {"only": ("h2d",), "deadline_seconds": 9.0, "seed": 0}
    assert stored(options, "selection") == {"memory_bytes": 2**20, "files": ("/x",)}
    assert request_of(options).memory_bytes == 2**20


@pytest.mark.parametrize("text", ["0s", "x", "1 day", "8d", "9" * 400, "1e308", "169h", ".", ""])
def test_what_is_no_budget_is_an_error(text: str) -> None:
    with pytest.raises(OptionError, match="is not a time of at most a week"):
        _ = TuneOptions("a.wwp", budget=text).budget_seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("60s", 60), ("2min", 120), ("1.5m", 90), ("1 h", 3600)]
)
def test_budgets_have_units(text: str, seconds: float) -> None:
    assert TuneOptions("a.wwp", budget=text).budget_seconds == seconds


def test_tables_share_their_options() -> None:
    for table in (TuneOptions, SimulateOptions):
        for each in fields(table):
            if each.name in {f.name for f in fields(SurveyOptions)}:
                mine, theirs = options_of(table)[each.name], options_of(SurveyOptions)[each.name]
                assert (mine.name, mine.bounds) == (theirs.name, theirs.bounds)
                is_of_tuning = (table, each.name) == (TuneOptions, "only")  # kept as its paths
                assert mine.stored == theirs.stored or is_of_tuning


def test_what_every_survey_has_is_one_option_and_comes_last() -> None:
    shared = options_of(AnySurveyOptions)
    for table, verb in ((SurveyOptions, "survey"), (ClusterSurveyOptions, "cluster survey")):
        declared = options_of(table)
        assert {name: declared[name] for name in shared} == shared
        names = [each.name for each in command().commands[verb].params if each.name in declared]
        assert names[-len(shared) :] == list(shared)
