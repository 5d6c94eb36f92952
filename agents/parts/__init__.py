"""Parts of `agents.ppo` under their names in later versions of batch-ppo."""

from agents.tools import lazy

lazy.export(__name__)
