"""Self-contained pages of results: one HTML file that opens from disk and asks nothing of a network.

:mod:`report` makes the page of a comparison, :mod:`parts` what pages are made of.
"""
