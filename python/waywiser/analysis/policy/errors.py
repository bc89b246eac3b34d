"""What goes wrong with policies and advice."""

from __future__ import annotations

from waywiser.words import WaywiserError


class PolicyError(WaywiserError):
    """No policy can be made of these profiles."""


class NotAPolicy(PolicyError):
    """A file that is no policy, or one that this version does not read."""


class NotMeasured(PolicyError):
    """A copy of which the profile has no time: the message says what is known, and what measures
    it."""
