"""Is this machine fit to be measured? One check per function; nothing is changed, only read."""
