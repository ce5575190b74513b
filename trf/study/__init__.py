"""The experiment: what the cells of a grid say, as tables, figures and a report.

A part is a module with a `NAME` (the stem of its files) and three functions:

    summarise(cells) -> dict    numbers drawn and written, JSON-able
    words(result) -> dict       tables and short phrases for the report, by placeholder
    draw(result) -> Figure      the figure
"""
