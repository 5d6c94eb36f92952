"""A backend that plays recorded frames, on the real road geometry."""

import functools
import math
import re

from planet.envs import gym_pixels
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import roads

DRIVING = 'planet.envs.carla:Driving-v0'
QUIET = dict(map='loop', vehicles=0, pedestrians=0, seed=0)


def constructor(length, min_length, repeat=1, pixels=True, **settings):
  """Constructor of the task's environment; nothing in it is from a test."""
  settings = {'backend': 'offline', **settings}
  settings.update(
    image_size=32, max_length=repeat * length, action_repeat=repeat
  )
  args = [DRIVING, 1, length, min_length, 32, False, pixels]
  return functools.partial(
    gym_pixels.make, *args, settings=settings, state=True
  )


def frame(number=0, x=0.0, y=31.75, yaw=0.0, speed=0.0, z=0.0, **kwargs):
  """Frame on the lower straight of `loop`, whose lane leads along +x."""
  return backend_lib.Frame(
    number=number,
    image=None,
    location=(x, y, z),
    yaw=yaw,
    velocity=(speed, 0.0, 0.0),
    **kwargs,
  )


def write_bridge(folder):
  """Write the ring with one more road, number 9, 9 m above its lower straight.

  The right lane of the bridge leads along -y, at x = 1.75.

  Args:
    folder: Folder, as a `pathlib.Path`.

  Returns:
    Path of the map.
  """
  text = roads.read('loop')[1]
  road = re.search('<road name="road 1".*?</road>', text, re.DOTALL).group()
  for old, new in (
    ('<link>.*?</link>', '<link/>'),
    ('id="1" junction', 'id="9" junction'),
    ('x="-50" y="-30" hdg="0"', f'x="0" y="-80" hdg="{math.pi / 2}"'),
    ('<elevation s="0" a="0"', '<elevation s="0" a="9"'),
  ):
    road = re.sub(old, new, road, count=1, flags=re.DOTALL)
  path = folder / 'bridge.xodr'
  path.write_text(text.replace('</OpenDRIVE>', road + '</OpenDRIVE>'))
  return str(path)


class RecordedBackend(backend_lib.Backend):
  """Answers with given frames; exceptions among them are raised.

  Args:
    frames: List of frames, the first of which is that of the reset.
    repeat: Whether the last frame is repeated for ever.
  """

  name = 'recorded'

  def __init__(self, frames, repeat=False):
    self._frames, self._repeat = frames, repeat
    self.controls = []
    self.resets = 0

  def open(self, config):
    self.map = roads.load(config['map'])

  def spawn_points(self):
    return [(0.0, 31.75, 0.0, 0.0)]

  def reset(self, episode):
    self._queue = list(self._frames)
    self.resets += 1
    return self._queue.pop(0)

  def tick(self, control):
    self.controls.append(control)
    result = self._queue[0]
    if len(self._queue) > 1 or not self._repeat:
      self._queue.pop(0)
    if isinstance(result, Exception):
      raise result
    return result
