"""The chapter of the model that is kept of a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

import profiles
from waywiser.model.machine_model import obtained_model
from waywiser.profile import Profile, WritableProfile
from waywiser.render.chapters.model import model, predicted_sets
from waywiser.render.document import document
from waywiser.render.entry import read
from waywiser.render.parts import Document, Fold, Sheet, Words

BOTH = "PCIe of gpu:*, both directions"


@pytest.fixture
def file(tmp_path: Path, derived_folder: Path) -> Path:
    found = profiles.write(tmp_path / "a.wwp")
    with Profile.open(found) as profile:
        obtained_model(profile)
    assert derived_folder.exists()
    return found


def sheets(found: Document) -> dict[str, Sheet]:
    blocks = [each for each in found.section("model").blocks if isinstance(each, Fold)]
    return {each.title: each for fold in blocks for each in fold.blocks if isinstance(each, Sheet)}


def test_a_recorded_survey_has_what_transfers_share(recorded: Document) -> None:
    section = recorded.section("model")
    assert section.folded
    lead = section.blocks[0]
    assert isinstance(lead, Words)
    assert "sets with GPUs differ by" in lead.text
    shared = {row.cells[0].text for row in sheets(recorded)["What transfers share"].rows}
    assert {BOTH, "writes of numa:0", "queue out of each GPU"} <= shared


def test_predicted_sets_begin_with_the_largest_error(recorded: Document) -> None:
    rows = sheets(recorded)["Predicted against measured"].rows
    errors = [abs(float(row.cells[3].text.rstrip("%"))) for row in rows]
    assert len(rows) > 50
    assert errors == sorted(errors, reverse=True)


def test_a_profile_without_a_kept_model_has_no_chapter(tmp_path: Path) -> None:
    plain = profiles.write(tmp_path / "a.wwp")
    entries = read([plain])
    assert entries[0].model is None
    assert not model(entries).blocks
    assert "model" not in [section.anchor for section in document(entries).sections]


def test_an_old_model_is_not_shown(file: Path) -> None:
    assert read([file])[0].model is not None
    with Profile.open(file) as profile:
        (row,) = [row for row in profile.visit_rows() if row.failure_kind == "interrupted"]
        workload = profile.workloads_of([row.series])[row.series]
    with WritableProfile.resume(file, {}) as resumed:
        resumed.commit_visit(profiles.visit(workload, row.block, profiles.good().samples))
    assert read([file])[0].model is None


def test_sets_are_predicted_beside_their_measurements(file: Path) -> None:
    (entry,) = read([file])
    assert entry.model is not None
    found = predicted_sets(entry, entry.model)
    assert found
    assert all(each.prediction.span > 0 and len(each.workload.transfers) > 1 for each in found)


def test_each_of_several_machines_has_its_own_section(file: Path, tmp_path: Path) -> None:
    other = profiles.write(tmp_path / "b.wwp", seed=2)
    section = model(read([file, other]))
    assert len(section.sections) == 1
    assert section.sections[0].blocks
