"""Which colour and marker a method has in the figures of a report."""

from __future__ import annotations

from itertools import combinations

from waywiser.render.figures.styles import assigned, colour_of, distance, marker_of
from waywiser.render.figures.theme import SERIES

FIGURES = [
    ["copy, pinned", "copy, pageable", "kernel, pinned"],
    ["copy, pinned", "kernel, pinned", "fault, managed"],
    ["copy", "kernel", "fault, managed"],
]


def test_methods_of_one_figure_differ_in_colour_and_in_marker() -> None:
    found = assigned(FIGURES)
    for figure in FIGURES:
        for one, other in combinations(figure, 2):
            assert colour_of(found[one]) != colour_of(found[other])
            assert marker_of(found[one]) != marker_of(found[other])


def test_every_method_of_a_report_has_its_own_colour_and_those_of_one_figure_are_far_apart() -> (
    None
):
    methods = [f"method {n}" for n in range(len(SERIES))]
    figures = [methods[n : n + 6] for n in range(0, len(SERIES), 3)]
    found = assigned(figures)
    assert len({colour_of(style) for style in found.values()}) == len(SERIES)
    near = [
        distance(colour_of(found[one]), colour_of(found[other]))
        for figure in figures
        for one, other in combinations(figure, 2)
    ]
    apart = [distance(one, other) for one, other in combinations(SERIES, 2)]
    assert min(near) > min(apart)
    half = assigned(figures[:4])
    for figure in figures[:4]:
        for one, other in combinations(figure, 2):
            assert distance(colour_of(half[one]), colour_of(half[other])) > 0.1


def test_no_two_methods_of_a_report_look_alike() -> None:
    figures = [[f"method {n}", f"method {n + 1}"] for n in range(3 * len(SERIES))]
    found = assigned(figures)
    looks = {(colour_of(style), marker_of(style)) for style in found.values()}
    assert len(looks) == len(found) == 3 * len(SERIES) + 1


def test_the_first_methods_have_the_first_styles_whatever_figure_comes_first() -> None:
    first = ["copy, pinned", "copy"]
    assert [assigned(FIGURES, first)[each] for each in first] == [0, 1]
    assert [assigned(FIGURES[::-1], first)[each] for each in first] == [0, 1]


def test_a_figure_of_more_methods_than_colours_is_drawn_with_more_markers() -> None:
    methods = [f"method {n}" for n in range(len(SERIES) + 3)]
    found = assigned([methods])
    looks = {(colour_of(style), marker_of(style)) for style in found.values()}
    assert len(looks) == len(methods)
