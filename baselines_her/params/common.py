"""Common parameters of all HER trainings."""

from typing import Any

from agents.pipeline.params import common
from agents.run import files
from baselines_her.settings import Settings

# Settings that the pipeline has other names for.
_RENAMED = {'n_cycles': 'epoch_size', 'rollout_batch_size': 'num_workers'}
# Settings that the environment decides if they are None.
_OPEN = 'clip_pos_returns', 'max_u'


def make_cpanel(env_name: str, number_epochs: int) -> dict[str, Any]:
  """Create a control panel with the default settings for an environment.

  Args:
    env_name: Id of the environment.
    number_epochs: Number of epochs.

  Returns:
    Dict of plain data. `epoch_size` is the number of cycles per epoch,
    `num_workers` that of environments per rank; `clip_pos_returns` and `max_u`
    are None for the values that suit the environment. For the rest see
    `Settings`.
  """
  panel = {
    'model_name': env_name,
    'seed': 0,
    'number_epochs': number_epochs,
    'test_activate': True,
    'test_interval': 1,
    'save_interval': 1,
    'memory_save': 'final',
    'max_exec_time': None,
    'max_exec_iter': None,
  }
  for name, value in Settings.usual(env_name).items():
    # Overrides must have the same type, so a default of 5 would refuse 2.5.
    real = Settings.base(name) is float and value is not None
    panel[_RENAMED.get(name, name)] = float(value) if real else value
  return {**panel, **dict.fromkeys(_OPEN)}


def gen_params(cpanel: dict[str, Any]) -> dict[str, Any]:
  """Generate a parameter tree.

  Args:
    cpanel: Result of `make_cpanel`.

  Returns:
    Nested dict of plain data.

  Raises:
    UsageError: If a value is not valid, or the environment does not fit.
  """
  keys = {x: _RENAMED.get(x, x) for x in Settings.names()}
  given = {x: cpanel[key] for x, key in keys.items() if key in cpanel}
  is_open = [x for x in _OPEN if given.get(x) is None]
  for name in is_open:
    given.pop(name, None)
  settings = Settings.make(cpanel['model_name'], given).to_plain()
  for name in is_open:
    # The memory decides, as it has the environment.
    del settings[name]
  for name in ('demo_file', 'load_path'):
    if settings[name]:
      settings[name] = files.absolute(settings[name])
  env = {'name': cpanel['model_name'], 'seed': cpanel['seed']}
  return {
    'runner': common.define_runner(
      cpanel, '/success/{}', cpanel['memory_save']
    ),
    # The same numbers every time.
    'tf': {'intra_op': 1, 'inter_op': 1},
    'memory': {
      'train': {
        'name': 'baselines_her.pipeline.memory.HERMemory',
        'args': {'env': env, 'settings': settings},
      }
    },
    'agents': {'agent': {'name': 'baselines_her.pipeline.agent.HERAgent'}},
    'explorer': {
      mode: {'name': 'baselines_her.pipeline.explorer.HERExplorer'}
      for mode in ('train', 'test', 'eval')
    },
  }
