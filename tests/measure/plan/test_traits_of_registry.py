"""The traits that the registered executors and kinds of memory declare fit together."""

from __future__ import annotations

import itertools

from machine.captured import machine
from waywiser.machine.catalogue import list_executors, list_memories, registered_traits
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.sets import set_executors


def test_each_class_of_paths_has_one_reference() -> None:
    by_executor = [kind.traits.reference for kind in list_executors() if kind.traits.reference]
    assert sorted(by_executor) == ["file", "gpu", "host", "unified"]
    by_memory = [
        (kind.traits.reference, place)
        for kind, place in itertools.chain.from_iterable(
            itertools.product([kind], kind.places) for kind in list_memories()
        )
        if kind.traits.reference
    ]
    assert len(set(by_memory)) == len(by_memory)
    assert {("gpu", "numa"), ("gpu", "gpu"), ("host", "numa")} <= set(by_memory)


def test_traits_name_what_is_registered() -> None:
    traits = registered_traits()
    executors = {each.name for each in traits.executors}
    memories = {each.name for each in traits.memories}
    assert executors == {kind.name for kind in list_executors()}
    for executor in traits.executors:
        assert executor.alternative is None or executor.alternative.executor in executors
    settings = {kind.name: kind.parameters for kind in list_executors()}
    for executor in traits.executors:
        choices = {each.name: each.choices for each in settings[executor.name]}
        for call in executor.calls:
            for name, value in {**call.settings, **call.defaults}.items():
                assert value in choices[name], f"{executor.name}: {call.text}"
    for memory in traits.memories:
        assert memory.same_as in {"", *memories}


def test_memories_answer_alike_with_the_registry_and_without() -> None:
    for kind in list_memories():
        assert kind.traits.places == kind.places
        assert kind.traits.cpu_accessible == kind.cpu_accessible
        assert not kind.traits.page_locked or kind.needs_gpu


def test_a_check_has_the_reference_and_a_survey_the_others_after_it() -> None:
    found = {
        name: set_executors(Basis(machine("h200-vm-4gpu"), Request(name)))
        for name in ("check", "full")
    }
    assert found == {"check": ["copy-engine"], "full": ["copy-engine", "sm"]}
