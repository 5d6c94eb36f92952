"""Wrappers of environments under their original names."""

from agents.envs.adapters import DeepMindWrapper
from agents.tools.wrappers import ActionRepeat
from agents.tools.wrappers import Async
from agents.tools.wrappers import ConcatObservation
from agents.tools.wrappers import ConvertTo32Bit
from agents.tools.wrappers import ExternalProcess
from agents.tools.wrappers import MaximumDuration
from agents.tools.wrappers import MinimumDuration
from agents.tools.wrappers import NormalizeActions
from agents.tools.wrappers import ObservationDict
from agents.tools.wrappers import ObservationToRender
from agents.tools.wrappers import OneHotAction
from agents.tools.wrappers import OverwriteRender
from agents.tools.wrappers import PadActions
from agents.tools.wrappers import PixelObservations
from agents.tools.wrappers import ProcessObservation
from agents.tools.wrappers import SelectObservations
from planet.envs.collect_dataset import CollectGymDataset

__all__ = [
  'ActionRepeat',
  'Async',
  'CollectGymDataset',
  'ConcatObservation',
  'ConvertTo32Bit',
  'DeepMindWrapper',
  'ExternalProcess',
  'MaximumDuration',
  'MinimumDuration',
  'NormalizeActions',
  'ObservationDict',
  'ObservationToRender',
  'OneHotAction',
  'OverwriteRender',
  'PadActions',
  'PixelObservations',
  'ProcessObservation',
  'SelectObservations',
]
