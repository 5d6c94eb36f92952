"""Wrappers of environments under their original names."""

from agents.envs.adapters import DeepMindWrapper
from agents.envs.wrappers import (
  ActionRepeat,
  Async,
  ConcatObservation,
  ConvertTo32Bit,
  ExternalProcess,
  MaximumDuration,
  MinimumDuration,
  NormalizeActions,
  ObservationDict,
  ObservationToRender,
  OneHotAction,
  OverwriteRender,
  PadActions,
  PixelObservations,
  ProcessObservation,
  SelectObservations,
)
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
