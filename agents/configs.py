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
  num_agents: Positive = setting(30, 'environments to step in parallel')
  eval_episodes: Count = setting(
    30, 'evaluation episodes per epoch; 0 for none'
  )
  use_gpu: Flag = setting(False, 'run the algorithm on the GPU')
  max_length: Positive = setting(1000, 'maximum episode length in steps')
  steps: Rate = setting(1e7, 'total training steps')
  env: Name | None = setting(None, 'environment id')
  seed: Whole | None = setting(None, 'random seed')
  meet_every: Positive | None = setting(
    None, f'steps between syncs of MPI processes (default {MEET_EVERY})'
  )
  # Network.
  network: Literal[
    'feed_forward_gaussian', 'recurrent_gaussian', 'feed_forward_categorical'
  ] = setting('feed_forward_gaussian', 'network of policy and value function')
  weight_summaries: dict[str, Any] = setting(
    dict(all=r'.*', policy=r'.*/policy/.*', value=r'.*/value/.*'),
    'groups of weights to summarize, as regular expressions',
  )
  policy_layers: Layers = setting(
    (200, 100), 'hidden layer sizes of the policy'
  )
  value_layers: Layers = setting(
    (200, 100), 'hidden layer sizes of the value function'
  )
  init_mean_factor: Rate = setting(0.1, 'scale of the initial mean actions')
  init_logstd: Finite = setting(
    -1, 'initial log standard deviation of the policy'
  )
  # Optimization. The last two numbers of epochs are unused, as in the original.
  update_every: Positive = setting(30, 'episodes per update')
  update_epochs: Positive = setting(25, 'epochs per update')
  optimizer: Name = setting('AdamOptimizer', 'optimizer of tf.train')
  update_epochs_policy: Positive = setting(64, 'unused')
  update_epochs_value: Positive = setting(64, 'unused')
  learning_rate: Rate = setting(
    1e-4, 'learning rate of policy and value function'
  )
  # Losses.
  discount: Rate = setting(0.995, 'discount factor')
  gae_lambda: Weight | None = setting(
    None, 'lambda of GAE; unset for discounted returns'
  )
  train_on_agent_action: Flag | None = setting(
    None, 'train on the sampled actions, before clipping'
  )
  kl_target: Rate = setting(1e-2, 'target KL divergence per update')
  kl_cutoff_factor: Rate = setting(
    2, 'multiple of kl_target above which to penalize'
  )
  kl_cutoff_coef: Weight = setting(
    1000, 'weight of the penalty above the cutoff'
  )
  kl_init_penalty: Weight = setting(1, 'initial weight of the KL penalty')


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
  lines = ['', 'configurations, and the defaults that they override:']
  for name, values in CHOICES.items():
    shown = [
      f'{key} {x:g}' if isinstance(x, float) else f'{key} {x}'
      for key, x in values.items()
    ]
    what = ', '.join(shown) or 'none; requires --env'
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
