"""New files and folders that replace old ones whole, on whatever file system they are.

What may happen here: calls of the system, which are tried before they are relied on.

Types to know: `Owner`, the process that makes a file; `Attributes`, who may read it.

Never here: what is in a file.
"""
