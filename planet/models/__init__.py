"""Latent dynamics models."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'Base': 'planet.models.base:Base',
    'DRNN': 'planet.models.drnn:DRNN',
    'RSSM': 'planet.models.rssm:RSSM',
    'SSM': 'planet.models.ssm:SSM',
  },
)
