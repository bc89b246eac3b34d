"""``python -m waywiser``: the same as the command ``waywiser``."""

from waywiser.cli import main

main()
