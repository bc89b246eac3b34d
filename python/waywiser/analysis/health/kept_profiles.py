"""The profiles that ``waywiser check`` keeps for this user: the baselines of each machine, and what
it measured on former days."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from waywiser.machine import Machine, may_be_same
from waywiser.profile import Profile, ProfileError, default_name, profiles_in, unused_file
from waywiser.profile.file_name import PACKED
from waywiser.words import WaywiserError
from waywiser.words.user_cache import DATA_VARIABLE, data_folder, user_data

MOST_BASELINES = 3
"""Baselines of a machine that are kept, the newest: so many show the noise between surveys."""

_REMEDY = f"name a folder: {DATA_VARIABLE}=..."


class NotKept(WaywiserError):
    """A profile that cannot be the baseline of its machine."""


def _folder(part: str, host: str) -> Path:
    return user_data(_of_host(part, host), f"the folder of {part}", _REMEDY)


def _of_host(part: str, host: str) -> str:
    return f"{part}/{default_name(host).name.rpartition('-')[0]}"


def new_check_file(host: str) -> Path:
    """The name of a profile that a check of this machine will write."""
    return unused_file(_folder("checks", host) / default_name(host))


def former_checks(machine: Machine) -> list[str]:
    """The profiles that checks of a machine with any of the same GPUs wrote, the oldest first. One
    that cannot be read is none."""
    found = []
    for file in _files("checks", machine):
        with suppress(ProfileError):
            if _is_of(file, machine):
                found.append(file)
    return found


def kept_baselines(machine: Machine) -> list[str]:
    """The kept baselines of a machine with any of the same GPUs, the oldest first: a GPU that is
    lost since then is what they show. Raises `ProfileError` for one that cannot be read: without it
    a loss would be no change."""
    return [file for file in _files("baselines", machine) if _is_of(file, machine)]


def _files(part: str, machine: Machine) -> list[str]:
    """The profiles in the folder of a host, in the order in which they were kept."""
    try:
        folder = data_folder(_of_host(part, machine.hostname)).expanduser()
    except RuntimeError:  # the user has no home
        return []
    return sorted(profiles_in(folder), key=_when_kept)


def _is_of(file: str, machine: Machine) -> bool:
    with Profile.open(file) as profile:
        known = profile.machine
    if known.hostname != machine.hostname:
        return False
    ours, theirs = ({gpu.uuid for gpu in each.gpus} for each in (machine, known))
    return may_be_same(ours, theirs)


def _when_kept(file: str) -> tuple[int, int, str]:
    """The time of a file; of several of one moment the order of their names, ``-2`` the second."""
    try:
        return os.stat(file).st_mtime_ns, len(file), file
    except OSError:
        return 0, len(file), file


def keep_baseline(file: str, machine: Machine) -> Path:
    """Copies a profile to the baselines of its machine, and removes the oldest of more than
    `MOST_BASELINES`. Raises `NotKept`, also if this survey is kept already."""
    folder = _folder("baselines", machine.hostname)
    packed = next(end for end in sorted(PACKED, reverse=True) if file.endswith(end))
    target = folder / f"{default_name(machine.hostname)}{packed}"
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    created = _created(file)
    if any(_created(each) == created for each in kept_baselines(machine)):
        raise NotKept("is a kept baseline already", where=file, remedy="measure again to keep more")
    try:
        shutil.copyfile(file, partial)
        target = unused_file(target)
        partial.rename(target)
        for old in kept_baselines(machine)[:-MOST_BASELINES]:
            Path(old).unlink(missing_ok=True)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise NotKept(
            f"cannot be kept: {error.strerror}", where=str(target), remedy=_REMEDY
        ) from error
    return target


def _created(file: str) -> str:
    with Profile.open(file) as profile:
        return profile.created
