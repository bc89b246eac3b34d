"""Where things lie in the source tree and in what was built of it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAKE_FOLDER = ROOT / "build" / "dev"
"""The build of the dev preset; the package over the fake GPU is in it."""

FAKE_TRANSFER = "waywiser_fake._transfer"
"""The transfer library over the fake GPU."""
