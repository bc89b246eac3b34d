"""The measures of a source tree that `scripts/structure` prints."""
