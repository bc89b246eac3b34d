"""Settings of other software, made from what a profile measured. One module for each consumer."""
