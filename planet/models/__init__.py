"""Latent dynamics models."""

from planet.models.base import Base
from planet.models.drnn import DRNN
from planet.models.rssm import RSSM
from planet.models.ssm import SSM

__all__ = ['Base', 'DRNN', 'RSSM', 'SSM']
