"""Configurations of training runs; every function returns a plain dict."""

import functools
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt, MinLen

from agents.envs import minitaur
from agents.run import schema
from agents.run.schema import (
  Count,
  Finite,
  Flag,
  Name,
  Positive,
  Whole,
  setting,
)

Rate = Annotated[Finite, Gt(0)]
Weight = Annotated[Finite, Ge(0)]
Layers = Annotated[list[Positive], MinLen(1)]

# Steps of all environments after which several processes meet.
MEET_EVERY = 10


class Config(schema.Settings):
  """Declaration of what `--params` may set.

  What has no default is left out of configurations that do not set it.
  """

  called: ClassVar[str] = 'Parameter {!r}'

  # General.
  num_agents: Positive = setting(30, 'environments that act at once')
  eval_episodes: Count = setting(30, 'episodes between two updates')
  use_gpu: Flag = setting(False, 'where to place the algorithm')
  max_length: Positive = setting(1000, 'steps of the longest episode')
  steps: Rate = setting(1e7, 'training steps')
  env: Name | None = setting(None, 'id of the environment')
  seed: Whole | None = setting(None, 'for all random numbers')
  meet_every: Positive | None = setting(
    None, f'steps between meetings of MPI processes; {MEET_EVERY} if unset'
  )
  # Network.
  network: Literal[
    'feed_forward_gaussian', 'recurrent_gaussian', 'feed_forward_categorical'
  ] = setting('feed_forward_gaussian', 'policy and value')
  weight_summaries: dict[str, Any] = setting(
    dict(all=r'.*', policy=r'.*/policy/.*', value=r'.*/value/.*'),
    'patterns of variables',
  )
  policy_layers: Layers = setting((200, 100), 'units of hidden layers')
  value_layers: Layers = setting((200, 100), 'units of hidden layers')
  init_mean_factor: Rate = setting(0.1, 'scale of the first mean actions')
  init_logstd: Finite = setting(-1, 'of the first policy')
  # Optimization. The last two numbers of epochs are unused, as in the original.
  update_every: Positive = setting(30, 'episodes per update')
  update_epochs: Positive = setting(25, 'times to use each episode')
  optimizer: Name = setting('AdamOptimizer', 'of tf.train')
  update_epochs_policy: Positive = setting(64, 'unused')
  update_epochs_value: Positive = setting(64, 'unused')
  learning_rate: Rate = setting(1e-4, 'of policy and value')
  # Losses.
  discount: Rate = setting(0.995, 'factor of later rewards')
  gae_lambda: Weight | None = setting(None, 'of advantages; unused if unset')
  train_on_agent_action: Flag | None = setting(
    None, 'learn from actions as they were drawn'
  )
  kl_target: Rate = setting(1e-2, 'change of the policy per update')
  kl_cutoff_factor: Rate = setting(2, 'of kl_target, from which on to cut')
  kl_cutoff_coef: Weight = setting(1000, 'weight of what is cut')
  kl_init_penalty: Weight = setting(1, 'first weight of the change')


# What the configurations set besides `default`. Minitaurs have constructors
# instead of an id.
CHOICES: dict[str, dict[str, Any]] = {
  'default': {},
  'cartpole': dict(env='CartPole-v1', max_length=500, steps=2e5),
  'pybullet_pendulum': dict(
    env='InvertedPendulumBulletEnv-v0', max_length=200, steps=5e7
  ),
  'pybullet_doublependulum': dict(
    env='InvertedDoublePendulumBulletEnv-v0', max_length=1000, steps=5e7
  ),
  'pybullet_pendulumswingup': dict(
    env='InvertedPendulumSwingupBulletEnv-v0', max_length=1000, steps=5e7
  ),
  'pybullet_cheetah': dict(
    env='HalfCheetahBulletEnv-v0', max_length=1000, steps=1e8
  ),
  'pybullet_ant': dict(env='AntBulletEnv-v0', max_length=1000, steps=5e7),
  'pybullet_kuka_grasping': dict(
    env='KukaBulletEnv-v0', max_length=1000, steps=1e7
  ),
  'pybullet_racecar': dict(env='RacecarBulletEnv-v0', max_length=10, steps=1e7),
  'pybullet_humanoid': dict(
    env='HumanoidBulletEnv-v0', max_length=1000, steps=3e8
  ),
  'pybullet_minitaur': dict(max_length=1000, steps=3e7),
  'pybullet_duck_minitaur': dict(max_length=1000, steps=3e7),
}


def default() -> dict[str, Any]:
  """Return what all configurations have in common; names no environment."""
  from agents import networks
  from agents.ppo.algorithm import PPOAlgorithm
  from agents.tools.tf1 import tf

  declared = {k: v for k, v in Config.defaults().items() if v is not None}
  return dict(
    declared,
    algorithm=PPOAlgorithm,
    network=getattr(networks, declared['network']),
    optimizer=getattr(tf.train, declared['optimizer']),
  )


def cartpole() -> dict[str, Any]:
  from agents import networks

  network = networks.feed_forward_categorical
  return dict(_complete('cartpole'), network=network)


def pybullet_pendulum() -> dict[str, Any]:
  return _complete('pybullet_pendulum')


def pybullet_doublependulum() -> dict[str, Any]:
  return _complete('pybullet_doublependulum')


def pybullet_pendulumswingup() -> dict[str, Any]:
  return _complete('pybullet_pendulumswingup')


def pybullet_cheetah() -> dict[str, Any]:
  return _complete('pybullet_cheetah')


def pybullet_ant() -> dict[str, Any]:
  return _complete('pybullet_ant')


def pybullet_kuka_grasping() -> dict[str, Any]:
  return _complete('pybullet_kuka_grasping')


def pybullet_racecar() -> dict[str, Any]:
  return _complete('pybullet_racecar')


def pybullet_humanoid() -> dict[str, Any]:
  # Unused, as in the original.
  randomizer = minitaur.minitaur_randomizer
  return dict(_complete('pybullet_humanoid'), randomizer=randomizer)


def pybullet_minitaur() -> dict[str, Any]:
  return _minitaur('pybullet_minitaur', duck=False)


def pybullet_duck_minitaur() -> dict[str, Any]:
  return _minitaur('pybullet_duck_minitaur', duck=True)


def describe() -> list[str]:
  """Return lines for `--help`: configurations, and what `--params` may set."""
  lines = ['', 'configurations, and what they set besides the defaults:']
  for name, values in CHOICES.items():
    shown = [
      f'{key} {x:g}' if isinstance(x, float) else f'{key} {x}'
      for key, x in values.items()
    ]
    what = ', '.join(shown) or 'no environment; give --env'
    lines.append(f'  {name:24} {what}')
  return [*lines, '', 'parameters (name, default, meaning):', *Config.table()]


def _complete(name: str) -> dict[str, Any]:
  return dict(default(), **CHOICES[name])


def _minitaur(name: str, duck: bool) -> dict[str, Any]:
  randomizer = minitaur.minitaur_randomizer
  env = functools.partial(
    minitaur.minitaur,
    duck=duck,
    accurate_motor_model_enabled=True,
    motor_overheat_protection=True,
    pd_control_enabled=True,
    env_randomizer=randomizer,
    render=False,
  )
  return dict(_complete(name), randomizer=randomizer, env=env)
