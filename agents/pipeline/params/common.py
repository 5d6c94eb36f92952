"""Common parts of all parameter modules."""

from collections.abc import Mapping, Sequence
from typing import Any

_EXPLORER = 'agents.pipeline.gym_explorer.GymExplorer'
_SAMPLERS = 'agents.pipeline.samplers'


def define_runner(
  cpanel: Mapping[str, Any],
  score: str = '/reward/{}/episodic',
  memory_save: str = 'final',
) -> dict[str, Any]:
  """Define the node `runner` of the parameter tree.

  Args:
    cpanel: Dict with the keys that are read below.
    score: Name of the score that the final report shows; `{}` stands for the
      mode, test or train.
    memory_save: Which checkpoints include the memories.
  """
  return {
    'name': 'agents.pipeline.runner.Runner',
    'n_cycles': cpanel['epoch_size'],
    'n_epochs': cpanel['number_epochs'],
    'max_time': cpanel['max_exec_time'],
    'max_iter': cpanel['max_exec_iter'],
    'randargs': {'seed': cpanel['seed']},
    'test_act': cpanel['test_activate'],
    'test_int': cpanel['test_interval'],
    'save_int': cpanel['save_interval'],
    'keep_checkpoints': 5,
    'memory_save': memory_save,
    'score': score.format('test' if cpanel['test_activate'] else 'train'),
  }


def find_spaces(env: Mapping[str, Any], key: str = 'agent') -> dict[str, Any]:
  """Return the spaces of a single agent as its arguments; None if unknown.

  Args:
    env: Description of an environment, see `env_config.inspect`.
    key: Path of the observation.
  """
  return {
    'observation_space': env['observation_space'].get(key),
    'action_space': env['action_space'].get('agent'),
  }


def define_explorers(
  seed: int | None,
  offsets: Sequence[int],
  shared: Mapping[str, Any],
  **modes: Mapping[str, Any],
) -> dict[str, Any]:
  """Define the node `explorer` of the parameter tree.

  Args:
    seed: Seed of the run, None for none.
    offsets: Number to add to the seed in each mode.
    shared: Settings of all explorers, see `gym_explorer.ExplorerSettings`.
    **modes: Further settings of each mode.
  """
  seeds = [None if seed is None else seed + x for x in offsets]
  return {
    mode: {'name': _EXPLORER, 'args': {**shared, **own, 'seed': seed}}
    for seed, (mode, own) in zip(seeds, modes.items())
  }


def define_sampler(*functions: str, **info: Any) -> dict[str, Any]:
  """Define the node `sampler` of an agent.

  Args:
    *functions: Names of functions in `agents.pipeline.samplers`, applied one
      after another.
    **info: Options for them.
  """
  references = [{'reference': f'{_SAMPLERS}:{x}'} for x in functions]
  args = {'functions': references, **info}
  return {'name': f'{_SAMPLERS}.Compose', 'args': args}
