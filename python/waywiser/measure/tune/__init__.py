"""Search of an executor's settings on this machine, by measurement."""
