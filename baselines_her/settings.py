"""The command line of training: flags, settings, and early refusals.

Free of TensorFlow, so that mistakes are reported at once.
"""

import contextlib
import os
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.run import errors, files, flags, schema, wandb_mirror
from baselines_her import config, envs
from baselines_her.declarations import Arguments, CommandLine, Flags

# What the command line calls in another way, or sets together with others.
_HIDDEN = ('rollout_batch_size', 'override_params')

# Arguments that are no settings of the agent, beside `gamma` and `T`.
_ARGUMENTS_ONLY = tuple(x for x in Arguments.names() if x not in ('gamma', 'T'))


def parse_args(
  argv: Sequence[str],
) -> tuple[types.SimpleNamespace, list[str]]:
  """Split the command line into known flags and the rest.

  `--logdir`, as the other systems have it, is the same as `--log_path`.

  Args:
    argv: List that begins with the name of the program.

  Returns:
    Tuple of an object with an attribute per flag, and the list of arguments
    that are not among the flags, in order.

  Raises:
    UsageError: If a flag has a value that is not allowed.
  """
  words = [re.sub(r'^--logdir(?=$|=)', '--log_path', x) for x in argv[1:]]
  return flags.parse_known('her-train', Flags, words)


def parse_cmdline_kwargs(unknown: Sequence[str]) -> dict[str, Any]:
  """Parse further settings of the form `--name=value` or `--name value`.

  Values are Python literals or YAML where they can be read as such. Names
  without value and words without name are dropped, as in the original.

  Returns:
    Dict of keyword arguments for `baselines_her.her.learn`.
  """
  result = {}
  name = None
  for word in unknown:
    if word.startswith('--'):
      name, equals, text = word[2:].partition('=')
      if equals:
        result[name] = schema.parse_value(text)
        name = None
    elif name:
      result[name] = schema.parse_value(word)
      name = None
  return result


def split_settings(kwargs: Mapping[str, Any]) -> dict[str, Any]:
  """Arrange settings of the command line so that they take effect.

  The original silently ignores settings of the agent unless they are within
  `override_params`; they are moved there.

  Args:
    kwargs: Dict of `parse_cmdline_kwargs`.

  Returns:
    Dict of arguments for `baselines_her.her.learn`.

  Raises:
    UsageError: If a name is unknown or a value is not allowed.
  """
  result, override = {}, {}
  for name, value in _flatten(_merge_params(kwargs)):
    if value is None and CommandLine.default(name) is None:
      continue
    if name == 'rollout_batch_size':
      raise errors.UsageError(
        'Parameter rollout_batch_size is the number of environments; set it '
        'with --num_env.'
      )
    value = CommandLine.check_value(name, value)
    if name in Arguments.names():
      result[name] = value
    else:
      override[name] = value
  _check_together(result, override)
  if override:
    result['override_params'] = override
  return result


def check_paths(args: types.SimpleNamespace, kwargs: Mapping[str, Any]) -> None:
  """Make sure that everything can be read and written.

  Raises:
    UsageError: If not.
  """
  load_path = kwargs.get('load_path')
  if load_path is not None:
    _check_readable('load_path', load_path)
  if args.save_video_interval:
    _check_video()
  for name in ('save_path', 'policy_dir', 'log_path'):
    path = getattr(args, name)
    if path:
      folder = os.path.expanduser(path)
      if name == 'save_path':
        if os.path.isdir(folder):
          raise errors.UsageError(
            f'Flag --save_path is the folder {path!r}; give a file within it.'
          )
        folder = os.path.dirname(os.path.abspath(folder))
      _check_writable(folder, name)


def check_flags(args: types.SimpleNamespace) -> None:
  """Make sure that the values of flags make sense.

  Raises:
    UsageError: If not.
  """
  check_algorithm(args.alg)
  flags.check(Flags, args)
  wandb_mirror.check(args.wandb)


def check_algorithm(name: str) -> None:
  """Make sure that there is an algorithm.

  Raises:
    UsageError: If not.
  """
  if name != 'her':
    raise errors.UsageError(
      f"Algorithm {name!r} is unknown; there is only 'her' here. PPO is "
      'python -m agents.train_ppo.'
    )


def describe(argv: Sequence[str] = ()) -> str:
  """Return the text of `--help`: all flags, settings and their values.

  Args:
    argv: What else is on the command line, which values depend on.
  """
  names = [x for x in CommandLine.names() if x not in _HIDDEN]
  env, values = _find_values(argv)
  return '\n'.join(
    [
      *flags.describe(Flags),
      '',
      'settings (--name=value, or several as --params={name: value}):',
      f'name, value for {env}, meaning',
      *CommandLine.table(names, values),
      '',
      'Pickles (demo_file, load_path) can run arbitrary code; use only files',
      'you trust. Checkpoints are plain data.',
    ]
  )


def _find_values(argv: Sequence[str]) -> tuple[str, dict[str, Any]]:
  """Return the environment, and settings that a command line leads to."""
  args, kwargs = types.SimpleNamespace(env=Flags.default('env')), {}
  # Help does not depend on whether the rest is right.
  with contextlib.suppress(errors.UsageError):
    args, unknown = parse_args(['', *argv])
    kwargs = split_settings(parse_cmdline_kwargs(unknown))
  override = kwargs.pop('override_params', {})
  strategy = kwargs.get('replay_strategy', 'future')
  values = {**config.define_params(args.env, strategy, override), **kwargs}
  if values.get('lr') is not None:
    values['Q_lr'] = values['pi_lr'] = values['lr']
  limit = values.setdefault('T', envs.find_time_limit(args.env))
  if limit:
    values.setdefault('gamma', 1 - 1 / limit)
  return args.env, values


def check_values(
  result: Mapping[str, Any], override: Mapping[str, Any]
) -> None:
  """Make sure that the values of settings make sense.

  Args:
    result: Dict of further arguments of `her.learn`.
    override: Dict of settings that differ from `DEFAULT_PARAMS`.

  Raises:
    UsageError: If not.
  """
  CommandLine.check({**override, **result})
  _check_together(result, override)


def _check_together(
  result: Mapping[str, Any], override: Mapping[str, Any]
) -> None:
  if result.get('gamma') is not None:
    config.return_limit(result['gamma'], result.get('clip_return', True))
  merged = {**config.DEFAULT_PARAMS, **override}
  imitates = merged['bc_loss'] or result.get('demo_file')
  if imitates and merged['demo_batch_size'] >= merged['batch_size']:
    raise errors.UsageError(
      f'Setting --demo_batch_size is {merged["demo_batch_size"]}; it has to '
      f'be smaller than batch_size, {merged["batch_size"]}.'
    )
  if merged['bc_loss'] and not result.get('demo_file'):
    raise errors.UsageError(
      'Setting --bc_loss needs demonstrations; give their file with '
      '--demo_file.'
    )


def _merge_params(kwargs: Mapping[str, Any]) -> dict[str, Any]:
  """Add what `--params` holds; settings with a flag of their own win."""
  own = dict(kwargs)
  params = own.pop('params', {})
  if not isinstance(params, dict):
    raise errors.UsageError(
      f"Flag --params is {params!r}; give a mapping such as '{{n_cycles: 10}}'."
    )
  return {**params, **own}


def _flatten(kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
  """Yield names and values, those within `override_params` included."""
  CommandLine.check_names(kwargs, more=Flags.names())
  for name, value in kwargs.items():
    if name != 'override_params':
      yield name, value
      continue
    value = CommandLine.check_value(name, value) or {}
    for inner in value:
      if inner not in CommandLine.names() or inner in _ARGUMENTS_ONLY:
        known = set(CommandLine.names()) - set(_ARGUMENTS_ONLY)
        raise errors.UsageError(
          f'Setting {inner!r} in override_params is unknown. '
          f'{errors.suggest(inner, known)}'
        )
    yield from value.items()


def _check_writable(folder: str, name: str) -> None:
  """Make sure that files can be written, without creating the folder."""
  missing = files.first_missing(folder)
  existing = os.path.dirname(missing) if missing else folder
  probe = os.path.join(existing, f'.writable-{os.getpid()}')
  try:
    with files.atomic_write(probe):
      pass
    os.remove(probe)
  except OSError as error:
    raise errors.UsageError(
      f'Cannot write to {folder!r} for --{name}: {error.strerror}. Choose '
      'another path.'
    ) from None


def _check_readable(name: str, path: str) -> None:
  try:
    open(os.path.expanduser(path), 'rb').close()
  except OSError as error:
    raise errors.UsageError(
      f'Cannot read {path!r} of --{name}: {error.strerror}.'
    ) from None


def _check_video() -> None:
  try:
    import imageio_ffmpeg  # noqa: F401
  except ImportError:
    raise errors.UsageError(
      'Videos need the extra viz: pip install "reference-agents[viz]".'
    ) from None
