"""Statistics of plain numbers: order statistics, noise, decisions, fits. Reads no profile."""
