"""The verbs: one function each, the same for Python and for the shell, with the docstring that is its help.

These modules import nothing heavy, so that help is there at once; each function imports what does the work.
"""
