"""What can be chosen by name: tasks, and what configurations set.

Free of TensorFlow, for `--help`.
"""

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

from planet.scripts import driving


class Row(NamedTuple):
  """Declaration of a task.

  Attributes:
    domain: Domain of the control suite, or `gym`.
    task: Task of the domain, or the id of an environment of gymnasium or
      PyBullet.
    action_repeat: Steps of the environment that a decision lasts.
    components: Names of the observations besides images; none if the
      environment of gymnasium or PyBullet observes images itself.
    name: Name in summaries where it differs from that of the row.
  """

  domain: str
  task: str
  action_repeat: int
  components: tuple[str, ...]
  name: str | None = None


TABLE = {
  'cartpole_balance': Row('cartpole', 'balance', 8, ('position', 'velocity')),
  'cartpole_swingup': Row('cartpole', 'swingup', 8, ('position', 'velocity')),
  'finger_spin': Row('finger', 'spin', 2, ('position', 'velocity', 'touch')),
  'cheetah_run': Row('cheetah', 'run', 4, ('position', 'velocity')),
  'cup_catch': Row('ball_in_cup', 'catch', 4, ('position', 'velocity')),
  'walker_walk': Row(
    'walker', 'walk', 2, ('height', 'orientations', 'velocity')
  ),
  'reacher_easy': Row(
    'reacher', 'easy', 4, ('position', 'velocity', 'to_target')
  ),
  'gym_cheetah': Row('gym', 'HalfCheetah-v3', 1, ('state',)),
  'gym_racecar': Row('gym', 'CarRacing-v0', 1, (), 'gym_racing'),
}


def describe() -> str:
  """Return tables of tasks and configurations as text."""
  repeats = {'dummy': 1, 'carla': 1}
  repeats.update({name: row.action_repeat for name, row in TABLE.items()})
  repeats['gym_<id>'] = 1
  lines = ['tasks (name, action repeat in simulator steps):']
  lines += [f'  {name:28} {repeat}' for name, repeat in repeats.items()]
  lines += ['', 'presets (--config), and the defaults that they change:']
  for name in CHOICES:
    values = ', '.join(f'{k} {x}' for k, x in choose(name, {}).items())
    text = f'{name:8} {values or "settings of the paper"}'
    lines += textwrap.wrap(
      text, 78, initial_indent='  ', subsequent_indent=' ' * 11
    )
  return '\n'.join(lines)


def choose(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
  """Return what a configuration chooses where the user gives nothing.

  Args:
    name: Name of the configuration.
    params: Given parameters.

  Returns:
    Dict from name to value.
  """
  return CHOICES[name](params)


def _choose_debug(params):
  # Episodes of driving have 100 steps instead of 1000.
  is_short = 'carla' in (params.get('tasks') or [])
  return dict(
    action_repeat=1 if is_short else 50,
    num_seed_episodes=1,
    train_steps=10,
    test_steps=10,
    max_steps=500,
    train_collects=[dict(after=10, every=10)],
    test_collects=[dict(after=10, every=10)],
    model_size=10,
    state_size=5,
    num_layers=1,
    num_units=10,
    batch_shape=[5, 10],
    loader_every=5,
    loader_window=2,
    planner_amount=5,
    planner_topk=2,
    planner_iterations=2,
    checkpoint_every=100,
  )


def _choose_cpu(params):
  has_usual_size = driving.choose_image_size(params) == 64
  return dict(
    tasks=['cartpole_balance'],
    batch_shape=[16, 32],
    model_size=128,
    num_units=200,
    num_layers=2,
    num_seed_episodes=5,
    loader_every=100,
    train_steps=3840,
    test_steps=16,
    collect_every=1280,
    checkpoint_every=160,
    # Twice that of the paper: falls are slow, and a decision lasts 8 steps.
    planner_horizon=24,
    planner_amount=300,
    planner_topk=30,
    planner_iterations=5,
    max_steps=400000,
    **(dict(network='conv_small') if has_usual_size else {}),
  )


def _choose_carla_cpu(params):
  given = params.get('image_size') or params.get('carla_size')
  network = {32: 'conv_32_small', 64: 'conv_small'}.get(given or 32)
  return dict(
    tasks=['carla'],
    carla_backend='offline',
    carla_map='loop',
    carla_vehicles=0,
    carla_pedestrians=0,
    carla_weather=0,
    action_repeat=2,
    # Slow enough to stay on the road for a while.
    carla_random_throttle=[-0.1, 0.5],
    # Leaving the road costs fifteen to thirty times what driving earns.
    carla_reward_scale=0.2,
    # A single image does not show the speed.
    state_diagnostics=True,
    gradient_heads=['image', 'reward', 'state'],
    free_nats=1.0,
    batch_shape=[12, 20],
    model_size=128,
    num_units=200,
    num_layers=2,
    num_seed_episodes=10,
    loader_every=12,
    train_steps=1440,
    test_steps=12,
    collect_every=180,
    checkpoint_every=12,
    train_action_noise=0.2,
    planner_horizon=10,
    planner_amount=150,
    planner_topk=15,
    planner_iterations=4,
    # Sixteen epochs.
    max_steps=23232,
    **({} if given else dict(carla_size=32)),
    **(dict(network=network) if network else {}),
  )


CHOICES = {
  'default': lambda params: {},
  'debug': _choose_debug,
  'cpu': _choose_cpu,
  'carla_cpu': _choose_carla_cpu,
}
