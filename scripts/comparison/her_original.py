"""Make HER of OpenAI Baselines importable on current TensorFlow.

The clone is not changed. What has been removed since is replaced: `tf.contrib`,
and the environments of mujoco-py by those of gymnasium-robotics.
"""

import os
import sys
import types
from typing import Any


def prepare(clone: str) -> Any:
  """Put a clone of openai/baselines first on the path.

  To be called before anything imports TensorFlow.

  Returns:
    The module that `import tensorflow` yields to the original.
  """
  os.environ['TF_USE_LEGACY_KERAS'] = '1'  # tf.layers
  import gym
  import numpy as np
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
  gym.make = lambda *unused_args, **unused_options: env
  sys.path.insert(0, clone)
  return tf


def _add_module(name, **content):
  module = types.ModuleType(name)
  vars(module).update(content)
  sys.modules[name] = module
  return module


def _define_env():
  """Return FetchReach with the interface of its time, for sizes and rewards."""
  import gym
  import gymnasium
  import gymnasium_robotics  # noqa: F401, registers its environments
  import numpy as np

  env: Any = gymnasium.make('FetchReach-v4')
  box = env.action_space

  class FetchReach:
    action_space = gym.spaces.Box(box.low, box.high, dtype=np.float32)
    _max_episode_steps = env.spec.max_episode_steps

    def reset(self):
      return env.reset()[0]

    def step(self, action):
      observation, reward, terminated, truncated, info = env.step(action)
      return observation, reward, terminated or truncated, info

    def compute_reward(self, achieved_goal, desired_goal, info):
      return env.unwrapped.compute_reward(achieved_goal, desired_goal, info)

  return FetchReach()
