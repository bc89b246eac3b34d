"""Profiles as something to read: one page, its Markdown form, and single figures.

Entry      one profile with its answers              entry.py
chapters/  make a `Document` of entries              the same for every form
page.py    a document as one self-contained page
markdown.py, figures/                                as Markdown; figures as SVG or PDF
"""
