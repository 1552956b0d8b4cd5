"""Sweeps over variants and seeds, and the demo."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cells": ["Cell", "Probing"],
        "grid": ["Sweep", "sweep"],
        "demo": ["Demo", "run_demo"],
    },
)
