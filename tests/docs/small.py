"""Runs a program, or Python code of the documentation, with few steps.

  python -m tests.docs.small NAME [ARGUMENT]...

NAME is a program of `setup.py`, or a file of Python code.
"""

import functools
import inspect
import json
import sys
from importlib import metadata

from agents.run import yaml_text

PLANET = dict(
  action_repeat=20,
  batch_shape=[2, 4],
  train_steps=4,
  test_steps=4,
  max_steps=8,
  num_seed_episodes=1,
  train_collects=[],
  test_collects=[],
  model_size=8,
  num_units=8,
  num_layers=1,
  planner_amount=4,
  planner_topk=2,
  planner_iterations=1,
  planner_horizon=2,
)
PPO = dict(
  num_agents=2,
  update_every=2,
  eval_episodes=2,
  update_epochs=2,
  policy_layers=[8],
  value_layers=[8],
)
HER = dict(n_cycles=1, n_test_rollouts=1, n_batches=1, batch_size=16, hidden=8)
SESSION = dict(number_epochs=1)
# What is added to the arguments of a program; later flags count.
ADDED = {
  'her-train': [
    *(f'--{name}={value}' for name, value in HER.items()),
    *('--num_timesteps=50', '--demo_batch_size=8', '--num_demo=1'),
  ],
  'her-play': ['--n_test_rollouts=1'],
  'her-record': ['--num_episodes=1'],
  'planet-evaluate': ['--episodes=1'],
  'ppo-train': ['--total_env_steps=400', '--noenv_processes'],
  'ppo-visualize': ['--num_episodes=1', '--num_agents=1'],
}
# Flag that holds a mapping, and what is put into it.
MAPPINGS = {
  'planet-train': ('--params', PLANET),
  'ppo-train': ('--params', {**PPO, 'max_length': 200}),
  'agents-session': ('--cpanel', SESSION),
}


def shrink(program, args):
  """Return arguments that make a program do little."""
  args = [*args, *ADDED.get(program, [])]
  if program not in MAPPINGS or '--load-checkpoint' in args:
    return args
  flag, small = MAPPINGS[program]
  result, values = [], {}
  words = iter(args)
  for word in words:
    name, equals, value = word.partition('=')
    if name == flag:
      values = yaml_text.parse(value if equals else next(words))
    else:
      result.append(word)
  if 'backend' in values.get('env', {}) or 'carla_server' in args:
    values.setdefault('env', {})['backend'] = 'offline'
  return [*result, flag, json.dumps({**values, **small})]


def shrink_training(train, small, steps=400):
  """Return `train` with other parameters and few steps."""
  signature = inspect.signature(train)

  @functools.wraps(train)
  def call(*args, **kwargs):
    given = signature.bind(*args, **kwargs).arguments
    given['params'] = {**(given.get('params') or {}), **small}
    # Parameters may say when to end instead.
    given['total_env_steps'] = None if 'max_steps' in small else steps
    return train(**given)

  return call


def main(name, *args):
  if name.endswith('.py'):
    with open(name) as file_:
      code = file_.read().replace('100000', '400')
    code = code.replace('n_trials=30', 'n_trials=3')
    if '.train(' not in code:
      # TensorFlow stays as it is for programs without this project.
      exec(compile(code, name, 'exec'), {'__name__': '__main__'})
      return
    import agents
    import baselines_her
    import planet

    ppo = {**PPO, 'max_length': 20}
    for module, small in (
      (agents, ppo),
      (baselines_her, HER),
      (planet, PLANET),
    ):
      module.train = shrink_training(module.train, small)
    exec(compile(code, name, 'exec'), {'__name__': '__main__'})
    return
  (program,) = metadata.entry_points(group='console_scripts', name=name)
  sys.argv = [name, *shrink(name, args)]
  sys.exit(program.load()())


if __name__ == '__main__':
  main(*sys.argv[1:])
