"""``python -m waywiser``: the same as the command ``waywiser``."""

import sys

try:
    from waywiser.cli import main

    main()
except KeyboardInterrupt:
    sys.stderr.write("waywiser: interrupted\n")
    sys.exit(130)
