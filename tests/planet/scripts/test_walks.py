"""How far a parameter and a checkpoint walk before they are used."""

import functools
import os
import sys

import pytest

from agents.tools.tf1 import tf
from planet.scripts import train
from tests import golden

FREE_NATS = 2.34375
SMALL = (
  '{tasks: [dummy], isolate_envs: none, image_size: 32, batch_shape: [2, 3], '
  'train_steps: 10, test_steps: 2, model_size: 8, test_collects: [], '
  'train_collects: [], max_steps: %d, free_nats: 2.34375}'
)


class Used(Exception):
  """The walk is at its end."""


class Walk:
  """Files whose functions pass something on to the function that uses it.

  These are the files in which an object of a new type holds it, and those on
  the stack when it is used.

  Args:
    wanted: Function from a value to whether it is the one that is followed.
    use: Name of the function that uses it.
  """

  def __init__(self, wanted, use):
    self._wanted, self._use = wanted, use
    self._held, self._seen = {}, {}
    self.files = set()

  def __enter__(self):
    sys.setprofile(self._watch)
    return self

  def __exit__(self, *unused):
    sys.setprofile(None)

  def _watch(self, frame, event, value):
    path = _find_path(frame.f_code)
    if not path or event not in ('call', 'return'):
      return
    if event == 'return':
      kinds = self._held.pop(id(frame), set())
      for part in value if isinstance(value, tuple) else [value]:
        is_new = (
          not isinstance(part, (str, float)) and id(part) not in self._seen
        )
        if is_new and type(part) not in kinds and self._holds(part):
          self._seen[id(part)] = part
          self.files.add(path)
      return
    kinds = {type(x) for x in _list_arguments(frame) if self._holds(x)}
    self._held[id(frame)] = kinds
    if kinds and frame.f_code.co_name == self._use:
      while frame:
        if any(map(self._holds, _list_arguments(frame))):
          self.files.add(_find_path(frame.f_code))
        frame = frame.f_back
      self.files.discard(None)
      raise Used

  def _holds(self, value, depth=3):
    if isinstance(value, (str, float)):
      return self._wanted(value)
    items = ()
    if isinstance(value, dict):
      items = value.values()
    elif isinstance(value, (list, tuple)) and len(value) < 60:
      items = value
    elif type(value).__module__.startswith(('planet', 'agents', 'argparse')):
      items = getattr(value, '__dict__', {}).values()
    return depth > 0 and any(self._holds(x, depth - 1) for x in list(items))


@functools.cache
def _find_path(code):
  """Path of a function of PlaNet or the toolbox, except general containers."""
  path = os.path.relpath(code.co_filename, golden.ROOT)
  parts = path.split(os.sep)
  is_ours = parts[0] in ('planet', 'agents') and parts[-1] != 'attr_dict.py'
  return path if is_ours and not code.co_name.startswith('<') else None


def _list_arguments(frame):
  code = frame.f_code
  count = code.co_argcount + code.co_kwonlyargcount
  count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
  names = [x for x in code.co_varnames[:count] if x not in ('self', 'cls')]
  return [frame.f_locals.get(x) for x in names]


def follow(logdir, max_steps, wanted, use):
  """Files of a walk in a run that ends there."""
  flags = ['--logdir', logdir, '--config', 'debug', '--params']
  walk = Walk(wanted, use)
  with pytest.raises(Used), walk:
    train.main(train.parse_args([*flags, SMALL % max_steps]))
  tf.reset_default_graph()
  return walk.files


def test_parameter(tmp_path):
  """From the command to the loss."""
  found = follow(
    str(tmp_path), 2, lambda x: x == FREE_NATS, 'compute_objectives'
  )
  assert found == {
    'agents/run/yaml_text.py',
    'planet/scripts/train.py',
    'planet/scripts/parameters.py',
    'planet/scripts/configs.py',
    'planet/training/utility.py',
    'planet/training/define_model.py',
    'planet/training/objectives.py',
  }


@pytest.mark.slow
def test_checkpoint(tmp_path):
  """From the folder of the run to the saver."""
  flags = ['--logdir', str(tmp_path), '--config', 'debug', '--params']
  assert train.run([*flags, SMALL % 2]) == 0
  tf.reset_default_graph()
  found = follow(
    str(tmp_path), 4, lambda x: str(x).endswith('model.ckpt-2'), 'restore'
  )
  assert found == {
    'agents/run/checkpoint.py',
    'agents/run/folder.py',
    'planet/scripts/configs.py',
    'planet/scripts/train.py',
    'planet/training/utility.py',
    'agents/tools/saver.py',
  }
