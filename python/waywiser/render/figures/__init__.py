"""Figures: one kind to a file, of shapes and texts, and how they become SVG and PDF."""
