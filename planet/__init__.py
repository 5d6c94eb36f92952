"""Deep planning network: learning latent dynamics from pixels."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'evaluate': 'agents.evaluation:evaluate',
    'load': 'planet.trained:load',
    'train': 'planet.library:train',
  },
)
