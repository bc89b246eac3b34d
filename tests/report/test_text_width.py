"""Widths of texts, compared with the font that they are the widths of."""

from __future__ import annotations

import pytest

from waywiser.render.figures.render import FONT
from waywiser.render.figures.text_width import BOLD, WIDER, folded, shortened, text_width

TEXTS = (
    "copy-engine, write-combined",
    "H2D 55.3 GB/s, 88%",
    "numa:0 → gpu:0-3",
    "±0.5 µs",
)


@pytest.mark.parametrize("bold", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_takes_no_more_than_is_kept_in_a_wider_font(text: str, bold: bool) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath, TextToPath

    font = FontProperties(family=FONT, size=100, weight="bold" if bold else "normal")
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    wider = BOLD if bold else 1
    assert width * 0.97 * WIDER <= text_width(text, 100 * wider) <= width * 1.15 * WIDER
    assert TextPath((0, 0), text, prop=font).get_extents().width <= text_width(text, 103 * wider)


@pytest.mark.parametrize("family", ["DejaVu Sans Mono", "DejaVu Serif", "STIXGeneral"])
@pytest.mark.parametrize("text", (*TEXTS, "file, direct-io", "512 MiB", "bound 63.02 GB/s"))
def test_the_font_does_not_matter(text: str, family: str) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(family=family, size=100)
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    assert width <= text_width(text, 100)


def test_a_text_is_cut_off_only_if_it_is_too_wide() -> None:
    whole = text_width(TEXTS[0], 10)
    assert shortened(TEXTS[0], 10, whole) == TEXTS[0]
    cut = shortened(TEXTS[0], 10, whole / 2)
    assert cut.endswith("…") and TEXTS[0].startswith(cut[:-1])
    assert text_width(cut, 10) <= whole / 2


def test_lines_are_folded_between_words_and_none_is_lost() -> None:
    text = "one two three four five six"
    lines = list(folded(text, 10, 60))
    assert len(lines) > 1 and " ".join(lines) == text
    assert all(text_width(line, 10) <= 60 for line in lines)
    assert list(folded("", 10, 60)) == []
