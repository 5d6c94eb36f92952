"""Lets `python scripts/reproduce.py` find the package that this folder is.

Python looks for modules in the folder of the program, where `scripts` is this
file; with a `__path__` it is a package.
"""

import os

__path__ = [os.path.dirname(os.path.abspath(__file__))]
