"""Configurations of training runs; every function returns a plain dict."""

import functools
from typing import Any


def default() -> dict[str, Any]:
  """What all configurations have in common; it names no environment."""
  from agents import networks
  from agents.ppo.algorithm import PPOAlgorithm
  from agents.tools.tf1 import tf

  return dict(
    # General.
    algorithm=PPOAlgorithm,
    num_agents=30,
    eval_episodes=30,
    use_gpu=False,
    max_length=1000,
    steps=1e7,
    # Network.
    network=networks.feed_forward_gaussian,
    weight_summaries=dict(
      all=r'.*', policy=r'.*/policy/.*', value=r'.*/value/.*'
    ),
    policy_layers=(200, 100),
    value_layers=(200, 100),
    init_mean_factor=0.1,
    init_logstd=-1,
    # Optimization. The two numbers of epochs are unused, as in the original.
    update_every=30,
    update_epochs=25,
    optimizer=tf.train.AdamOptimizer,
    update_epochs_policy=64,
    update_epochs_value=64,
    learning_rate=1e-4,
    # Losses.
    discount=0.995,
    kl_target=1e-2,
    kl_cutoff_factor=2,
    kl_cutoff_coef=1000,
    kl_init_penalty=1,
  )


def pybullet_pendulum() -> dict[str, Any]:
  return dict(
    default(), env='InvertedPendulumBulletEnv-v0', max_length=200, steps=5e7
  )


def pybullet_doublependulum() -> dict[str, Any]:
  return dict(
    default(),
    env='InvertedDoublePendulumBulletEnv-v0',
    max_length=1000,
    steps=5e7,
  )


def pybullet_pendulumswingup() -> dict[str, Any]:
  return dict(
    default(),
    env='InvertedPendulumSwingupBulletEnv-v0',
    max_length=1000,
    steps=5e7,
  )


def pybullet_cheetah() -> dict[str, Any]:
  return dict(
    default(), env='HalfCheetahBulletEnv-v0', max_length=1000, steps=1e8
  )


def pybullet_ant() -> dict[str, Any]:
  return dict(default(), env='AntBulletEnv-v0', max_length=1000, steps=5e7)


def pybullet_kuka_grasping() -> dict[str, Any]:
  return dict(default(), env='KukaBulletEnv-v0', max_length=1000, steps=1e7)


def pybullet_racecar() -> dict[str, Any]:
  return dict(default(), env='RacecarBulletEnv-v0', max_length=10, steps=1e7)


def pybullet_humanoid() -> dict[str, Any]:
  from agents import environments

  return dict(
    default(),
    # Unused, as in the original.
    randomizer=environments.minitaur_randomizer,
    env='HumanoidBulletEnv-v0',
    max_length=1000,
    steps=3e8,
  )


def pybullet_minitaur() -> dict[str, Any]:
  return _minitaur(duck=False)


def pybullet_duck_minitaur() -> dict[str, Any]:
  return _minitaur(duck=True)


def _minitaur(duck):
  from agents import environments

  randomizer = environments.minitaur_randomizer
  env = functools.partial(
    environments.minitaur,
    duck=duck,
    accurate_motor_model_enabled=True,
    motor_overheat_protection=True,
    pd_control_enabled=True,
    env_randomizer=randomizer,
    render=False,
  )
  return dict(
    default(), randomizer=randomizer, env=env, max_length=1000, steps=3e7
  )
