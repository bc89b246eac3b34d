"""The page as Chromium shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from report.browser import (
    FAMILIES,
    MOST_WORDS_ON_FIRST_SCREEN,
    PATIENCE_MILLISECONDS,
    TABLES,
    VISIBLE_WORDS,
)
from report.conftest import HOSTILE

pytestmark = pytest.mark.slow

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}
PAPER = {"width": 718, "height": 1035}
"""A4 without its margins, in points of 1/96 inch."""
LEAST_CONTRAST = 4.5
"""The contrast of text (WCAG 2.2, 1.4.3)."""

ALL_OPEN = "document.querySelectorAll('details').forEach(each => each.open = true)"

CONTRASTS = """() => {
  const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parse = text => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const back = parse(getComputedStyle(element).backgroundColor);
      if (back.length === 3 || back[3] > 0.99) return back;
    }
    return [255, 0, 255];
  };
  const found = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest('svg') || !element.checkVisibility())
      continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = element.tagName + '.' + element.className;
    found[name] = Math.min(found[name] ?? 99, ratio);
  }
  return found;
}"""

BEFORE_THE_STATUS = """() => {
  const verdict = document.querySelector('.verdict');
  const before = each => each.compareDocumentPosition(verdict) & Node.DOCUMENT_POSITION_FOLLOWING;
  return [...document.querySelectorAll('main *')]
    .filter(each => before(each) && !each.contains(verdict)).map(each => each.tagName);
}"""

Look = Callable[..., Any]


@pytest.fixture
def look(chromium: Any, pages: dict[str, Path]) -> Iterator[Look]:
    """Opens a page; afterwards nothing was said on the console and nothing was fetched."""
    opened, said, requested = [], [], []

    def open_page(name: str = "alone", **options: Any) -> Any:
        context = chromium.new_context(**{"viewport": DESKTOP, **options})
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: requested.append(request.url))
        page.goto(pages[name].as_uri())
        return page

    yield open_page
    for context in opened:
        context.close()
    assert said == []
    fetched = [url for url in requested if not url.startswith("data:")]
    assert len(fetched) == len(opened), fetched


def test_every_machine_shows_pages_in_the_same_fonts(look: Look) -> None:
    """Sizes of text decide what fits where, and installed fonts are different everywhere."""
    page = look()
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    query = {"nodeId": root, "selector": "h1, h2, p, td, th, pre, code, svg text"}
    used = {
        font["familyName"]
        for node in session.send("DOM.querySelectorAll", query)["nodeIds"]
        for font in session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    }
    assert used and used <= set(FAMILIES.values())


@pytest.mark.parametrize("name", ["alone", "beside", "direct"])
def test_every_figure_is_drawn_within_its_frame(look: Look, name: str) -> None:
    page = look(name)
    page.evaluate(ALL_OPEN)
    found = page.evaluate(
        """() => [...document.querySelectorAll('svg.figure')].map(svg => {
          const box = svg.getBoundingClientRect();
          const out = [...svg.querySelectorAll('text')].filter(text => {
            const own = text.getBoundingClientRect();
            return own.left < box.left - 1 || own.right > box.right + 1 ||
                   own.top < box.top - 1 || own.bottom > box.bottom + 1;
          }).map(text => text.textContent);
          return {width: box.width, height: box.height, out,
                  drawn: svg.querySelectorAll('path, use, rect').length,
                  name: svg.querySelector('title').textContent};
        })"""
    )
    assert len(found) > 5
    for figure in found:
        assert figure["width"] > 200 and figure["height"] > 80, figure
        assert figure["drawn"] > 5, figure
        assert figure["out"] == [], figure


@pytest.mark.parametrize(("name", "least"), [("alone", 50), ("beside", 50), ("fleet", 10)])
def test_every_link_leads_somewhere_and_every_name_is_one(
    look: Look, name: str, least: int
) -> None:
    page = look(name)
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))
    links = page.evaluate(
        "() => [...document.querySelectorAll('a[href]')].map(each => each.getAttribute('href'))"
    )
    assert len(links) > least
    assert {link.removeprefix("#") for link in links} <= set(ids)
    labels = page.evaluate(
        "() => [...document.querySelectorAll('[aria-labelledby]')]"
        ".flatMap(each => each.getAttribute('aria-labelledby').split(' '))"
    )
    assert set(labels) <= set(ids)


def test_evidence_leads_to_its_curve_though_that_is_folded(look: Look) -> None:
    page = look()
    page.evaluate(ALL_OPEN)
    row = page.locator(".remark .listing a").first.get_attribute("href")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = false)")
    assert not page.locator(f"[id='{row[1:]}']").is_visible()
    page.evaluate(f"location.hash = '{row}'")
    page.locator(f"[id='{row[1:]}']").wait_for(state="visible")


def test_a_link_opens_the_sections_that_it_leads_into(look: Look) -> None:
    page = look(reduced_motion="reduce")  # scrolls at once
    page.evaluate("document.querySelectorAll('nav details').forEach(each => each.open = true)")
    for anchor in ("glossary", "question-calm"):
        inside = page.locator(f"#{anchor} > *").first
        assert not inside.is_visible()
        page.locator(f"a[href='#{anchor}']:visible").first.click()
        inside.wait_for(state="visible")
        heading = page.locator(f"#{anchor}-title").bounding_box()
        assert 0 <= heading["y"] < DESKTOP["height"], anchor


MOST_WORDS = 2000


def test_four_gpus_take_few_words_before_anything_is_opened(look: Look) -> None:
    page = look("recorded")
    words = page.evaluate(VISIBLE_WORDS)
    page.evaluate(ALL_OPEN)
    assert 200 < words <= MOST_WORDS < page.evaluate(VISIBLE_WORDS)


@pytest.mark.parametrize("name", ["alone", "beside", "fleet"])
@pytest.mark.parametrize("opened", [False, True])
def test_nothing_overflows_on_a_phone(look: Look, name: str, opened: bool) -> None:
    page = look(name, viewport=PHONE)
    if opened:
        page.evaluate(ALL_OPEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    beyond = page.evaluate(
        """() => [...document.querySelectorAll('main *, header *, nav *')].filter(each =>
          each.checkVisibility() && each.getBoundingClientRect().right > innerWidth + 1 &&
          !each.closest('.scroll, .drawing, pre') && !each.closest('.aloud')
        ).map(each => each.outerHTML.slice(0, 120))"""
    )
    assert beyond == []


HEADLINES = """() => {
  const scroll = document.querySelector('#headlines .scroll');
  const seen = each => each.checkVisibility();
  const cells = [...scroll.querySelectorAll('th, td')].filter(seen);
  return {
    columns: [...scroll.querySelectorAll('thead th')].filter(seen).map(each => each.innerText),
    cut: scroll.scrollWidth - scroll.clientWidth,
    lines: Math.max(...cells.map(each => each.getBoundingClientRect().height)) /
      parseFloat(getComputedStyle(cells[0]).lineHeight),
    text: scroll.innerText,
  };
}"""


@pytest.mark.parametrize("name", ["alone", "direct", "recorded"])
@pytest.mark.parametrize("width", [1920, 1400, 390])
def test_the_headline_table_has_few_columns_and_is_not_cut(
    look: Look, name: str, width: int
) -> None:
    page = look(name, viewport={"width": width, "height": 900})
    found = page.evaluate(HEADLINES)
    assert found["columns"][:2] == ["path", "GB/s"] and len(found["columns"]) <= 6
    assert found["cut"] <= 0 and found["lines"] < 5
    hidden = ("all such paths, GB/s", "call to completion")
    assert not any(each in found["text"] for each in hidden)
    page.evaluate(ALL_OPEN)
    opened = page.evaluate(HEADLINES)
    assert opened["cut"] <= 0
    assert all(each in opened["text"] for each in hidden)
    assert all(each in opened["text"] for each in ("size", "normal for", "achieved by"))


@pytest.mark.parametrize("name", ["alone", "beside", "direct"])
def test_no_table_scrolls_sideways_on_a_phone(look: Look, name: str) -> None:
    """The cells of a row follow one another, each after the name of its column."""
    found = look(name, viewport=PHONE).evaluate(TABLES)
    assert len(found) > 10 and max(each["over"] for each in found) <= 1
    assert all(each["names"] == each["cells"] for each in found)
    assert sum(each["cells"] for each in found) > 100
    wide = look(name, viewport={"width": 1400, "height": 900}).evaluate(TABLES)
    assert sum(each["names"] for each in wide) == 0


HINTED = """() => [...document.querySelectorAll('figure')].map(figure => {
  const drawing = figure.querySelector('.drawing'), hint = figure.querySelector('.hint');
  return [drawing.scrollWidth > drawing.clientWidth + 1 &&
            getComputedStyle(drawing).overflowX == 'auto',
          hint.getBoundingClientRect().height > 10];
})"""
"""Returns for each figure whether it scrolls, and whether a hint says so."""


@pytest.mark.parametrize("width", [390, 700, 1280])
@pytest.mark.parametrize("name", ["alone", "beside", "direct"])
def test_a_hint_is_shown_on_the_figures_that_scroll_and_on_no_other(
    look: Look, name: str, width: int
) -> None:
    found = look(name, viewport={"width": width, "height": 844}).evaluate(HINTED)
    assert all(scrolls == hinted for scrolls, hinted in found)
    assert any(scrolls for scrolls, _ in found) or width > PHONE["width"]


@pytest.mark.parametrize("width", [390, 1280])
def test_names_that_a_narrow_frame_hides_are_below_the_figure(look: Look, width: int) -> None:
    page = look(viewport={"width": width, "height": 844})
    page.evaluate(ALL_OPEN)
    found = page.evaluate(
        """() => [...document.querySelectorAll('figure:has(.keys)')].map(figure => {
          const drawing = figure.querySelector('.drawing');
          const names = drawing.querySelector('.names');
          const axes = [...drawing.querySelectorAll('svg > path, svg > text')];
          const listed = [...figure.querySelectorAll('.keys li')]
            .map(each => each.textContent.trim().replace(/^= /, ''));
          return {
            beside: names != null && names.getBoundingClientRect().width > 0,
            below: figure.querySelector('.keys').checkVisibility(),
            unknown: names ? listed.filter(name => !names.textContent.includes(name)) : [],
            cut: axes.filter(each => each.getBoundingClientRect().right >
                                     drawing.getBoundingClientRect().right + 1).length,
          };
        })"""
    )
    assert len(found) > 3
    assert all(each["below"] != each["beside"] for each in found), found
    assert not any(each["unknown"] or each["cut"] for each in found), found
    assert any(each["beside"] for each in found) == (width != PHONE["width"])


BROKEN_WORDS = """() => [...document.querySelectorAll('thead th')].flatMap(cell => {
  const text = cell.firstChild, found = [];
  for (const word of text.data.matchAll(/[^\\s-]+/g)) {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    // a heading that is repeated in the next column has the same width there
    const widths = [...range.getClientRects()].map(each => Math.round(each.width));
    if (new Set(widths).size > 1) found.push(word[0]);
  }
  return found;
})"""


@pytest.mark.parametrize("name", ["beside", "recorded"])
def test_paper_breaks_no_heading_of_a_table_within_a_word(look: Look, name: str) -> None:
    page = look(name, viewport=PAPER)
    page.emulate_media(media="print")
    assert page.locator("thead th").count() > 20
    assert page.evaluate(BROKEN_WORDS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER["width"]


def test_paper_has_no_hint(look: Look) -> None:
    page = look(viewport=PAPER)
    page.emulate_media(media="print")
    assert not any(any(each) for each in page.evaluate(HINTED))


@pytest.mark.parametrize("name", ["alone", "beside", "fleet"])
def test_the_status_is_on_the_first_screen_of_a_phone(look: Look, name: str) -> None:
    """All of it, and of the text nothing but its heading comes before."""
    page = look(name, viewport=PHONE)
    assert page.evaluate(BEFORE_THE_STATUS) == ["H2"]
    box = page.locator(".verdict").first.bounding_box()
    assert box is not None and 0 < box["y"] < box["y"] + box["height"] <= PHONE["height"]


def test_contents_are_folded_on_a_phone_and_beside_the_text_on_a_desk(look: Look) -> None:
    link = "nav a[href='#status']:visible"
    phone = look(viewport=PHONE)
    assert phone.locator(link).count() == 0
    phone.locator("nav .narrow > summary").click()
    assert phone.locator(link).count() == 1
    assert look(viewport=DESKTOP).locator(link).count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(look: Look, scheme: str) -> None:
    page = look(color_scheme=scheme)
    page.evaluate(ALL_OPEN)
    found = page.evaluate(CONTRASTS)
    assert len(found) > 20
    assert {name: ratio for name, ratio in found.items() if ratio < LEAST_CONTRAST} == {}
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)")


def test_the_keyboard_goes_the_way_of_the_eye(look: Look) -> None:
    page = look()
    page.keyboard.press("Tab")
    focused = "() => document.activeElement.className"
    assert page.evaluate(focused) == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    seen = []
    for _ in range(25):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                """() => { const own = document.activeElement;
                  const all = [...document.querySelectorAll('*')];
                  return [all.indexOf(own), getComputedStyle(own).outlineStyle]; }"""
            )
        )
    positions = [position for position, _ in seen]
    assert positions == sorted(set(positions))
    assert all(style == "solid" for _, style in seen)
    assert page.locator("[tabindex]:not([tabindex='0'])").count() == 0


def test_it_is_read_aloud_in_order(look: Look) -> None:
    page = look()
    assert page.locator("html").get_attribute("lang") == "en"
    for landmark in ("header", "nav[aria-label]", "main", "footer", "h1"):
        assert page.locator(f"body > {landmark}, header > {landmark}").count() == 1, landmark
    levels = page.evaluate(
        "() => [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(each => +each.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("svg.figure:not([role=img])").count() == 0
    assert page.locator("svg.figure:has(title):has(desc)").count() > 5
    marks = page.locator(".mark")
    assert marks.count() > 3
    said = page.locator(".mark .aloud").all_text_contents()
    assert len(said) == marks.count() and set(said) <= {
        "yes",
        "no",
        "not determined",
        "OK",
        "review",
        "problem",
    }


def test_what_others_wrote_stays_text(look: Look) -> None:
    page = look()
    assert page.locator("script").count() == 0
    assert page.locator("h1").text_content() == HOSTILE
    assert page.title() == f"{HOSTILE}: Waywiser report"
    titles = page.locator("svg.figure title").all_text_contents()
    assert any(HOSTILE in title for title in titles)


@pytest.mark.parametrize("name", ["alone", "beside", "fleet"])
def test_paper_shows_what_is_folded_and_takes_it_all(look: Look, name: str) -> None:
    page = look(name, color_scheme="dark", viewport=PAPER)
    folded = page.locator(".folded table, .folded li").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.evaluate("each => each.getBoundingClientRect().height") > 5
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER["width"]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF") and printed.count(b"/Type /Page\n") > 1


FIRST_SCREEN = {"width": 1400, "height": 900}

WORDS_ON_THE_SCREEN = """apart => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let words = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!element.checkVisibility() || element.closest(apart)) continue;
    for (const word of node.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const box = range.getBoundingClientRect();
      words += box.width > 0 && box.top < innerHeight && box.bottom > 0;
    }
  }
  return words;
}"""
"""Counts the words that are seen without scrolling, some elements apart."""


@pytest.mark.parametrize("name", ["alone", "direct", "recorded"])
def test_the_first_screen_has_the_status_the_numbers_and_few_words(look: Look, name: str) -> None:
    page = look(name, viewport=FIRST_SCREEN)
    assert 40 < page.evaluate(WORDS_ON_THE_SCREEN, ".aloud, .skip") <= MOST_WORDS_ON_FIRST_SCREEN
    for font in FAMILIES.values():  # nothing below comes up in any font
        page.evaluate(IN_ANOTHER_FONT, font)
        second = page.locator("main > section").first.bounding_box()
        assert second["y"] >= FIRST_SCREEN["height"], font


def test_the_first_screen_of_several_machines_has_few_words_beside_their_table(look: Look) -> None:
    page = look("beside", viewport=FIRST_SCREEN)
    assert (
        40
        < page.evaluate(WORDS_ON_THE_SCREEN, "table, .aloud, .skip")
        <= MOST_WORDS_ON_FIRST_SCREEN
    )


FONTS_OF_A_READER = {
    "as it is": "",
    "serif": "DejaVu Serif",
    "monospaced": "DejaVu Sans Mono",
    "15 % wider": "1.15",
    "15 % narrower": "0.85",
}

IN_ANOTHER_FONT = """font => {
  if (isNaN(font)) document.documentElement.style.setProperty('--font', `"${font}"`);
  else for (const text of document.querySelectorAll('svg.figure text')) {
    text.setAttribute('textLength', text.getComputedTextLength() * font);
    text.setAttribute('lengthAdjust', 'spacingAndGlyphs');
  }
}"""
"""Shows the texts of figures in another family, or so many times as wide."""

COLLISIONS = """() => [...document.querySelectorAll('svg.figure')].flatMap(svg => {
  const title = svg.querySelector('title').textContent, frame = svg.getBoundingClientRect();
  const found = [], seen = [];
  for (const text of svg.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    if (!box.width) continue;
    if (box.left < frame.left - 1 || box.right > frame.right + 1)
      found.push([title, text.textContent, 'is cut off']);
    for (const [other, its] of seen)
      if (Math.min(box.right, its.right) - Math.max(box.left, its.left) > 0.5 &&
          Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top) > 0.5)
        found.push([title, text.textContent, other.textContent]);
    seen.push([text, box]);
  }
  return found;
})"""
"""Returns the labels of figures whose boxes intersect, and those beyond the figure."""


@pytest.mark.parametrize("viewport", [FIRST_SCREEN, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["alone", "beside", "direct", "fleet", "recorded"])
def test_no_two_labels_of_a_figure_collide_in_any_font(
    look: Look, name: str, viewport: dict[str, int]
) -> None:
    for font in FONTS_OF_A_READER.values():
        page = look(name, viewport=viewport)
        page.evaluate(ALL_OPEN)
        if font:
            page.evaluate(IN_ANOTHER_FONT, font)
        assert page.evaluate("document.querySelectorAll('svg.figure text').length") > 10 or (
            name == "fleet"
        )
        assert page.evaluate(COLLISIONS) == [], font


def test_labels_that_collide_are_found(look: Look) -> None:
    page = look("direct", viewport=FIRST_SCREEN)
    page.evaluate(
        "document.querySelectorAll('svg.figure text').forEach(e => e.setAttribute('x', 20))"
    )
    assert len(page.evaluate(COLLISIONS)) > 10
