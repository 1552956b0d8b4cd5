"""``python -m babyssa`` is the ``babyssa`` command."""

import sys

from babyssa.cli import main

sys.exit(main())
