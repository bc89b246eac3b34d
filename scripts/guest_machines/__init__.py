"""Emulated machines: which there are, the image that all start from, and how one is run."""
