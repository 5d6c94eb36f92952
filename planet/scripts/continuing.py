"""Runs that go on with other parameters than they began with.

What changes neither the variables nor the meaning of the recorded episodes may
change; `fixed` of the parameters says what may not, and why.
"""

from agents.run import errors, folder
from planet.scripts import parameters
from planet.scripts.parameters import Parameters
from planet.tools.attr_dict import AttrDict


def merge(
  logdir: str, stored: AttrDict, given: AttrDict, step: int
) -> tuple[AttrDict, list[str]]:
  """Combine an existing run with the command line that continues it.

  What is given takes effect. What is not given stays as it was.

  Args:
    logdir: Folder of the run, for messages.
    stored: AttrDict of `config`, `params`, `seed` and optionally `changes`, as
      the run has them.
    given: AttrDict of `config`, `params` and `seed`, as the user gives them.
    step: Global step that the run goes on from.

  Returns:
    Tuple of an AttrDict like `stored`, in which `changes` is a list of dicts
    with the `step` and `[old, new]` for each name; and a list of lines that
    tell the user what differs.

  Raises:
    UsageError: If something differs that has to stay as it is.
  """
  if given.config != stored.config:
    raise errors.UsageError(
      f'The run in {logdir} was started with --config {stored.config}, which '
      f'--config {given.config} would change as a whole. Give --config '
      f'{stored.config} and single parameters, or use another logdir.'
    )
  changed = _find_changes(stored, given.params)
  _refuse_fixed(logdir, changed)
  source = AttrDict(stored, _unlocked=True)
  source.params = {**stored.params, **{x: given.params[x] for x in changed}}
  if given.seed not in (None, stored.seed):
    changed['seed'] = [stored.seed, given.seed]
    source.seed = given.seed
  if changed:
    source.changes = [*stored.get('changes', []), {'step': step, **changed}]
  kept = _find_kept(stored, given.params)
  return source, _describe(logdir, step, changed, kept)


def _find_changes(stored, given):
  """Dict from sorted names to lists of the old and the new value."""
  given = {name: parameters.read(AttrDict(given), name) for name in given}
  return folder.compare(_complete(stored), given, given)


def _find_kept(stored, given):
  """Dict of the values from before that a new run would not have."""
  usual = _complete(AttrDict(stored, params={}))
  names = set(stored.params) - set(given)
  different = folder.compare(_complete(stored), usual, names)
  return {name: before for name, (before, _) in different.items()}


def _complete(stored):
  """Values of all parameters: given, of the configuration, or by default."""
  from planet.scripts import configs

  params = AttrDict(stored.params, _unlocked=True)
  chosen = AttrDict({**configs.choose(stored.config, params), **stored.params})
  return {name: parameters.read(chosen, name) for name in Parameters.names()}


def _refuse_fixed(logdir, changed):
  refused = [
    f'{_format(name, *values)} ({Parameters.fixed(name)})'
    for name, values in changed.items()
    if Parameters.fixed(name)
  ]
  if refused:
    raise errors.UsageError(
      f'The run in {logdir} cannot go on with {"; ".join(refused)}. Leave '
      'that as it is, or use another logdir.'
    )


def _describe(logdir, step, changed, kept):
  lines = [
    f'{_format(name, *values)} (from step {step} of {logdir})'
    for name, values in changed.items()
  ]
  if kept:
    text = ', '.join(f'{name}: {value}' for name, value in kept.items())
    lines.append(f'Not given now, kept as before: {text}.')
  return lines


def _format(name, old, new):
  return f'{name}: {old} -> {new}'
