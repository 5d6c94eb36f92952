"""Deep planning network: learning latent dynamics from pixels."""

try:
  from agents.tools import lazy
except ImportError as error:
  raise ImportError(
    'The module `agents` does not belong to reference-agents. A folder or '
    'package of the same name (openai-agents, batch-ppo) hides it; start from '
    'another folder or use a separate virtual environment.'
  ) from error

lazy.export(__name__)
