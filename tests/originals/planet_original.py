"""Make the released PlaNet of 2019 importable on current TensorFlow.

The clone is not changed. Replaces what no longer exists: `tf.contrib`, names in
NumPy and paths of modules.
"""

import argparse
import contextlib
import functools
import glob
import itertools
import multiprocessing
import operator
import os
import shutil
import sys
import types
from typing import Any

from agents.run import yaml_text

# Environment steps of an episode, for every task.
_EPISODE = 1000


def prepare(clone: str) -> Any:
  """Put a clone of google-research/planet first on the path.

  Call this before importing TensorFlow.

  Returns:
    Module that `import tensorflow` returns in the original.
  """
  os.environ['TF_USE_LEGACY_KERAS'] = '1'  # tf.layers and recurrent cells
  import numpy as np
  import scipy.ndimage
  import tensorflow.compat.v1 as tf

  tf.disable_v2_behavior()
  for kind in (float, int, bool, object):
    vars(np).setdefault(kind.__name__, kind)
  # TensorFlow Probability needs the real module.
  import tensorflow_probability  # noqa: F401

  rnn = types.SimpleNamespace(GRUBlockCell=_define_gru(tf))
  tf.contrib = types.SimpleNamespace(rnn=rnn)
  sys.modules['tensorflow'] = tf
  sys.modules['scipy.ndimage.interpolation'] = scipy.ndimage
  # OpenGL and TensorFlow crash in one process.
  sys.modules['dm_control'] = types.ModuleType('dm_control')
  suite = types.SimpleNamespace(load=None)
  sys.modules['dm_control'].suite = suite  # type: ignore[attr-defined]
  sys.path.insert(0, clone)
  return tf


def train(clone: str, flags: list[str], folder: str) -> None:
  """Train with flags; writes a row per test to `progress.csv` in a folder."""
  parser = argparse.ArgumentParser()
  for name in ('config', 'params', 'seed'):
    parser.add_argument(f'--{name}')
  args = parser.parse_args(flags)
  seed = int(args.seed)
  tf = prepare(clone)
  import numpy as np
  from matplotlib.backends import backend_agg

  from planet import tools
  from planet.scripts import train
  from planet.training import utility

  count = itertools.count(1000 * seed)
  load = lambda *names: _Suite(next(count), *names)
  sys.modules['dm_control'].suite.load = load
  # Uses names that have changed; nobody reads this file.
  dump = lambda config, file_, *args, **kwargs: file_.write('')
  vars(utility)['yaml'] = types.SimpleNamespace(dump=dump, Dumper=None)
  canvas: Any = backend_agg.FigureCanvasAgg
  canvas.tostring_rgb = lambda self: bytes(
    np.asarray(self.buffer_rgba())[..., :3]
  )
  reset = tf.reset_default_graph
  tf.reset_default_graph = lambda: (reset(), tf.set_random_seed(seed))
  np.random.seed(seed)
  args.params = tools.AttrDict(yaml_text.parse(args.params))
  logdir = os.path.join(folder, 'run')
  shutil.rmtree(logdir, ignore_errors=True)
  for _ in train.process(logdir, args):  # type: ignore[arg-type]
    path = os.path.join(folder, 'progress.csv')
    _write_returns(logdir, args.params.num_seed_episodes, path)


def _write_returns(logdir, randoms, path):
  """Write the returns of all tests except the random ones from their files."""
  import numpy as np

  train, test = (
    sorted(glob.glob(os.path.join(logdir, f'{x}_episodes', '*.npz')))
    for x in ('train', 'test')
  )
  with open(path, 'w') as file_:
    file_.write('global_step,phase,mean_score\n')
    for name in test[randoms:]:
      base = os.path.basename(name)
      before = sum(os.path.basename(x) < base for x in train)
      score = np.load(name)['reward'].sum()
      file_.write(f'{_EPISODE * before},eval,{score:.6g}\n')


class _Suite:
  """Environment of dm_control in a process without TensorFlow."""

  def __init__(self, *args):
    spawn = multiprocessing.get_context('spawn')
    self._pipe, other = spawn.Pipe()
    spawn.Process(target=_serve, args=(other, *args), daemon=True).start()
    for name in ('step', 'reset', 'observation_spec', 'action_spec'):
      setattr(self, name, functools.partial(self._call, name))
    self.physics = types.SimpleNamespace(
      render=functools.partial(self._call, 'physics.render')
    )

  def _call(self, name, *args, **kwargs):
    self._pipe.send((name, args, kwargs))
    return self._pipe.recv()


def _serve(pipe, seed, domain, task):
  from agents.envs import opengl

  opengl.select_backend()
  from dm_control import suite

  env = suite.load(domain, task, {'random': seed})
  with contextlib.suppress(EOFError):
    while True:
      name, args, kwargs = pipe.recv()
      pipe.send(operator.attrgetter(name)(env)(*args, **kwargs))


def _define_gru(tf):
  """Return the cell of tf.contrib.rnn, with its names, shapes and equations."""
  layer_rnn_cell: Any = tf.nn.rnn_cell.GRUCell.__mro__[1]

  class GRUBlockCell(layer_rnn_cell):
    def __init__(self, num_units, name='gru_cell'):
      super().__init__(name=name)
      self._num_units = num_units

    state_size = property(lambda self: self._num_units)
    output_size = property(lambda self: self._num_units)

    def build(self, shape):
      sizes = int(shape[1]) + self._num_units, self._num_units
      ones, zeros = tf.constant_initializer(1.0), tf.constant_initializer(0.0)
      self._gates = (
        self.add_variable('w_ru', [sizes[0], 2 * sizes[1]]),
        self.add_variable('b_ru', [2 * sizes[1]], initializer=ones),
      )
      self._candidate = (
        self.add_variable('w_c', sizes),
        self.add_variable('b_c', [sizes[1]], initializer=zeros),
      )
      self.built = True

    def call(self, inputs, state):
      weights, bias = self._gates
      gates = tf.sigmoid(
        tf.matmul(tf.concat([inputs, state], 1), weights) + bias
      )
      reset, update = tf.split(gates, 2, 1)
      weights, bias = self._candidate
      candidate = tf.concat([inputs, reset * state], 1)
      candidate = tf.tanh(tf.matmul(candidate, weights) + bias)
      state = update * state + (1 - update) * candidate
      return state, state

  return GRUBlockCell
