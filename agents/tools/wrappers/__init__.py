"""Wrappers of environments, sorted by what they change.

All of them take and offer `reset() -> observation` and `step(action) ->
(observation, reward, done, info)`, and forward what they do not know to the
environment below. Nothing here imports TensorFlow, because wrapped
environments live in processes of their own.
"""

from agents.run import references
from agents.tools.wrappers.action import (
  ActionRepeat,
  ClipAction,
  NormalizeActions,
  OneHotAction,
  PadActions,
)
from agents.tools.wrappers.base import Wrapper
from agents.tools.wrappers.episode import (
  AutoReset,
  LimitDuration,
  MaximumDuration,
  MinimumDuration,
  RandomStart,
)
from agents.tools.wrappers.observation import (
  ConcatObservation,
  FrameDelta,
  FrameHistory,
  ObservationDict,
  ProcessObservation,
  SelectObservations,
)
from agents.tools.wrappers.pixels import (
  ObservationToRender,
  OverwriteRender,
  PixelObservations,
)
from agents.tools.wrappers.process import Async, ExternalProcess
from agents.tools.wrappers.randomness import OwnRandomness
from agents.tools.wrappers.ranges import (
  CacheSpaces,
  ConvertTo32Bit,
  RangeNormalize,
)
from agents.tools.wrappers.recording import RecordEpisodes

__all__ = [
  'ActionRepeat',
  'Async',
  'AutoReset',
  'CacheSpaces',
  'ClipAction',
  'ConcatObservation',
  'ConvertTo32Bit',
  'ExternalProcess',
  'FrameDelta',
  'FrameHistory',
  'LimitDuration',
  'MaximumDuration',
  'MinimumDuration',
  'NormalizeActions',
  'ObservationDict',
  'ObservationToRender',
  'OneHotAction',
  'OverwriteRender',
  'OwnRandomness',
  'PadActions',
  'PixelObservations',
  'ProcessObservation',
  'RandomStart',
  'RangeNormalize',
  'RecordEpisodes',
  'SelectObservations',
  'Wrapper',
]

# What neither starts processes nor writes files.
for _name in {*__all__} - {'Async', 'ExternalProcess', 'RecordEpisodes'}:
  references.nameable(globals()[_name])
