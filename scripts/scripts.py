"""Make `python scripts/reproduce.py` find the package `scripts`.

Python then imports this file as `scripts`; `__path__` turns it into a package.
"""

import os

__path__ = [os.path.dirname(os.path.abspath(__file__))]
