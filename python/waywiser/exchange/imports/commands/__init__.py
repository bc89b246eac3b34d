"""Command lines as captured texts show them: words, launchers, wrappers and programs."""
