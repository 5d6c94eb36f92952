"""Make HER of OpenAI Baselines importable on current TensorFlow.

The clone is not changed. Replaces `tf.contrib`, which no longer exists, and the
environments of mujoco-py by those of gymnasium-robotics. Several environments
run in one process.
"""

import importlib
import os
import sys
import types
from typing import Any

import numpy as np


def prepare(clone: str) -> Any:
  """Put a clone of openai/baselines first on the path.

  Call this before importing TensorFlow.

  Returns:
    Module that `import tensorflow` returns in the original.
  """
  os.environ['TF_USE_LEGACY_KERAS'] = '1'  # tf.layers
  import gym
  import tensorflow.compat.v1 as tf
  from tensorflow.python.ops.data_flow_ops import StagingArea

  tf.disable_v2_behavior()
  staging = _add_module('tensorflow.contrib.staging', StagingArea=StagingArea)
  layers = _add_module(
    'tensorflow.contrib.layers',
    xavier_initializer=tf.glorot_uniform_initializer,
  )
  tf.contrib = _add_module('tensorflow.contrib', staging=staging, layers=layers)
  sys.modules['tensorflow'] = tf
  # Wrappers for Atari, which HER does not use.
  _add_module('cv2', ocl=types.SimpleNamespace(setUseOpenCL=lambda flag: None))
  load = np.load
  np.load = lambda *args, **options: load(
    *args, **{'allow_pickle': True, **options}
  )
  env = _define_env()
  gym.make = lambda name, **unused: env(name)  # type: ignore[assignment]
  for task in ('Reach', 'Push', 'PickAndPlace', 'Slide'):
    gym.register(f'Fetch{task}-v1', entry_point='gym.envs.robotics:GoalEnv')
  # Prevent the unneeded registration of its environments.
  sys.modules['pybullet_envs'] = None  # type: ignore[assignment]
  sys.path.insert(0, clone)
  from baselines.common import cmd_util

  cmd_util.SubprocVecEnv = _define_vec_env(cmd_util.DummyVecEnv)
  return tf


def train(clone: str, flags: list[str], folder: str) -> None:
  """Train with flags; writes a row per epoch to `progress.csv` in a folder."""
  prepare(clone)
  from baselines import run

  run.main(['her', '--alg=her', f'--log_path={folder}', *flags])


def _add_module(name, **content):
  module = types.ModuleType(name)
  vars(module).update(content)
  sys.modules[name] = module
  return module


def _define_env():
  """Return a class of environments with the interface of that time."""
  import gym
  import gymnasium_robotics  # noqa: F401, registers its environments

  gymnasium = importlib.import_module('gymnasium')

  class GoalEnv(gym.Env):
    def __init__(self, name):
      self._env = gymnasium.make(name.replace('-v1', '-v4'))
      self._seed = None
      self._max_episode_steps = self._env.spec.max_episode_steps
      self.spec = types.SimpleNamespace(  # type: ignore[assignment]
        id=name, max_episode_steps=self._max_episode_steps
      )
      box = self._env.action_space
      self.action_space = gym.spaces.Box(box.low, box.high, dtype=np.float32)
      # Declared as 32 bits, although observations have 64.
      self.observation_space = gym.spaces.Dict(
        {
          key: gym.spaces.Box(-np.inf, np.inf, x.shape, np.float32)
          for key, x in self._env.observation_space.spaces.items()
        }
      )

    def seed(self, seed=None):
      self._seed = seed

    def reset(self):  # type: ignore[override]
      observation, _ = self._env.reset(seed=self._seed)
      self._seed = None
      return observation

    def step(self, action):
      observation, reward, terminated, truncated, info = self._env.step(action)
      return observation, reward, terminated or truncated, info

    def compute_reward(self, achieved_goal, desired_goal, info):
      return self._env.unwrapped.compute_reward(
        achieved_goal, desired_goal, info
      )

  return GoalEnv


def _define_vec_env(base):
  """Return a replacement for environments in separate processes.

  Those processes could not import the clone. As in them, observations keep the
  dtype that the environments return.
  """

  class VecEnv(base):  # type: ignore[misc, valid-type]
    def __init__(self, env_fns):
      super().__init__(env_fns)
      for key, value in self.buf_obs.items():
        self.buf_obs[key] = value.astype(np.float64)

  return VecEnv
