"""Figures, drawn with matplotlib: one kind to a file, and how they become SVG and PDF."""
