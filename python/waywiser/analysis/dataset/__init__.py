"""A fleet as a data set: what follows from its profiles, in columns that any engine reads.

What may happen here: profiles become rows, a file for each; files of past days become one file a
day; rows become nights and subjects again.

Types to know:

- `RowColumn` (`dataset.columns`): what each column means.
- `RunRows` (`dataset.rows`): the rows of one profile.
- `DataSet` (`dataset.files`): the files of a folder.
- `Scan` (`dataset.scan`): what DuckDB reads of them.

Never here: verdicts. They follow from the rows when they are asked for, and would age in a file.
"""
