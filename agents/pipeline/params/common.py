"""What all modules of parameters have in common."""

from agents.run import errors


def define_runner(cpanel, score='/reward/test/episodic', memory_save='final'):
  """Part `runner` of the tree of parameters.

  Args:
    cpanel: Dict with the keys that are read below.
    score: Name that the report at the end tells about.
    memory_save: When to keep the contents of memories.

  Raises:
    UsageError: If a number is too small.
  """
  for key in ('number_epochs', 'epoch_size', 'test_interval', 'save_interval'):
    if cpanel[key] < 1:
      raise errors.UsageError(
        f'Key {key!r} is {cpanel[key]}; it has to be 1 or more.'
      )
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
    'memory_save': memory_save,
    'score': score,
  }
