"""Deep planning network: learning latent dynamics from pixels."""

try:
  from agents.tools import lazy
except ImportError as error:
  raise ImportError(
    'The module `agents` is not the one of reference-agents. Another package '
    'of that name (openai-agents, batch-ppo) or a folder of that name comes '
    'first; use a separate environment, or start from another folder.'
  ) from error

lazy.export(__name__)
