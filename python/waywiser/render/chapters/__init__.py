"""The chapters of a report, one file each: entries in, a section out."""
