"""Documents of parts, and their renderers: page, Markdown, terminal; and single figures.

What may happen here: chapters make parts (tables, findings, figures) of profiles, and views those
that commands show; renderers (`page`, `markdown`, `terminal`) lay parts out. A table that a report
and a command share is a view.

Types to know:

- `Document`, `Section` and the parts (`render.parts`): plain frozen values.
- `Entry` (`render.entry`): one profile with its answers, which chapters read.
- `Drawing` (`render.figures.drawing`): a figure as shapes and texts, written as SVG. It needs no
  script: it prints, works offline, and screen readers get its title, description and table. Labels
  are placed by the widths of one font that the code knows, so that no figure depends on installed
  fonts. A method has one colour and marker in all figures.

A part knows no renderer; a renderer knows no verb. Figures show the first of each class of equal
curves with default settings; every curve has a row in a table, to which the evidence of a finding
leads.

Never here: a decision, an estimate, a fit. What is shown was decided below.
"""
