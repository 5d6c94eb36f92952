"""Wrappers of environments, sorted by what they change.

All of them take and offer `reset() -> observation` and `step(action) ->
(observation, reward, done, info)`, and forward what they do not know to the
environment below. Nothing here imports TensorFlow, because wrapped
environments live in processes of their own.
"""

from agents.run import references
from agents.tools.wrappers.action import ActionRepeat
from agents.tools.wrappers.action import ClipAction
from agents.tools.wrappers.action import NormalizeActions
from agents.tools.wrappers.action import OneHotAction
from agents.tools.wrappers.action import PadActions
from agents.tools.wrappers.base import Wrapper
from agents.tools.wrappers.episode import AutoReset
from agents.tools.wrappers.episode import LimitDuration
from agents.tools.wrappers.episode import MaximumDuration
from agents.tools.wrappers.episode import MinimumDuration
from agents.tools.wrappers.episode import RandomStart
from agents.tools.wrappers.observation import ConcatObservation
from agents.tools.wrappers.observation import FrameDelta
from agents.tools.wrappers.observation import FrameHistory
from agents.tools.wrappers.observation import ObservationDict
from agents.tools.wrappers.observation import ProcessObservation
from agents.tools.wrappers.observation import SelectObservations
from agents.tools.wrappers.pixels import ObservationToRender
from agents.tools.wrappers.pixels import OverwriteRender
from agents.tools.wrappers.pixels import PixelObservations
from agents.tools.wrappers.process import Async
from agents.tools.wrappers.process import ExternalProcess
from agents.tools.wrappers.randomness import OwnRandomness
from agents.tools.wrappers.ranges import CacheSpaces
from agents.tools.wrappers.ranges import ConvertTo32Bit
from agents.tools.wrappers.ranges import RangeNormalize
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
