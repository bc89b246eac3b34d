"""What commands show, as parts of a document. A table that a report shows too is here once."""
