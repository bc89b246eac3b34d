"""Medians, non-parametric intervals, and what makes a number doubtful. Never calls a device."""
