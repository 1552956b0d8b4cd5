"""The colours and markers of every figure."""

# Okabe & Ito's colours, which readers with any colour vision can tell apart, darkest first; each has a marker
# of its own, for print in grey.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
