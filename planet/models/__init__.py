"""Latent dynamics models."""

from planet.models.base import Base as Base
from planet.models.drnn import DRNN as DRNN
from planet.models.rssm import RSSM as RSSM
from planet.models.ssm import SSM as SSM
