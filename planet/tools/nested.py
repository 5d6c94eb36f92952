"""`agents.tools.nested`, where PlaNet has it."""

import sys

from agents.tools import nested

sys.modules[__name__] = nested
