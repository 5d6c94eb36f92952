"""The command line of sessions, and overrides of their parameters.

Free of TensorFlow, so that mistakes are reported at once.
"""

import argparse
import contextlib
import copy
import dataclasses
import json
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval

from agents.pipeline import toolbox
from agents.run import (
  errors,
  flags,
  plain_data,
  references,
  schema,
  wandb_mirror,
)
from agents.run.schema import Count, Whole, setting


class Flags(schema.Settings):
  """Declaration of the flags of a session."""

  params: str = setting('', 'module of parameters', title='MODULE')
  cpanel: str = setting('{}', 'its overrides, a YAML mapping', title='YAML')
  repeal: str = setting(
    '{}',
    'overrides of the whole tree, such as {"runner.n_epochs": 5}',
    title='YAML',
  )
  load_checkpoint: str = setting(
    '',
    'checkpoint, or session whose newest checkpoint is taken',
    title='PATH',
  )
  resume: bool = setting(False, 'continue training in the same session')
  play: bool = setting(False, 'show the policy that is stored or initialised')
  play_episodes: Count = setting(5, 'episodes to show; 0 for no end', title='N')
  trust: list[str] = setting([], references.HELP, title='MODULE')
  custom: bool = setting(False, 'call the method custom of the runner')
  create_session_only: bool = setting(False, 'write checkpoint 0, then exit')
  dry_run: bool = setting(False, 'leave nothing on disk')
  # Folders.
  session_path: str = setting(
    '~/logdir/sessions', 'parent of all sessions', title='FOLDER'
  )
  session_name: str = setting('', 'by default made up', title='NAME')
  save_modules: list[str] = setting(
    [], 'packages to copy into the session', title='PACKAGE'
  )
  msg: str = setting('', 'remark, kept with parameters', title='TEXT')
  # Watching.
  log_level: Annotated[Whole, Interval(ge=0, le=4)] = setting(
    1, '0 debug, 1 info, 2 warn, 3 error, 4 fatal', title='N'
  )
  profiler_level: Whole = setting(
    -1, 'depth of the scopes that are timed, -1 for all', title='N'
  )
  tensorboard: bool = setting(False, 'start a TensorBoard server')
  visdom: bool = setting(False, 'draw live curves with visdom')
  visdom_port: Whole = setting(
    8097, 'of a server that runs, or to start one', title='N'
  )
  wandb: str | None = setting(None, wandb_mirror.MEANING, title='PROJECT')
  no_monitor_cpu: bool = setting(False, 'do not log CPU and memory')
  no_monitor_gpu: bool = setting(False, 'do not log GPUs')
  # Accepted for the original's sake; this is the default.
  monitor_cpu: bool = setting(False)
  monitor_gpu: bool = setting(False)


class _Parser(argparse.ArgumentParser):
  def error(self, message):
    raise errors.UsageError(f'{message}. See {self.prog} --help.')


def parse_args(argv: Sequence[str] | None = None) -> types.SimpleNamespace:
  """Read the command line of a session.

  Args:
    argv: List of arguments after the name of the program; those of the
      process by default.

  Returns:
    Namespace with an attribute per flag.

  Raises:
    UsageError: If flags are unknown, malformed, or do not go together.
    SystemExit: After `--help`, with code 0.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  parser = _Parser(
    prog='python -m agents.pipeline.main',
    description='Train, continue or show an agent: explorer -> memory -> '
    'agents,\nin a session folder that holds everything about the run.',
    epilog=_describe_cpanel(argv),
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  flags.add_arguments(parser, Flags)
  args = types.SimpleNamespace(**vars(parser.parse_args(argv)))
  flags.check(Flags, args, dashes=True)
  args.cpanel = _parse_mapping('cpanel', args.cpanel)
  args.repeal = _parse_mapping('repeal', args.repeal)
  _check_combination(args)
  return args


def parse_json(text: str) -> Any:
  """Parse data from JSON, with tuples and arrays where the text says so.

  `{"__tuple__": true, "items": [...]}` becomes a tuple, `{"__numpy__": true,
  "items": ...}` an array.

  Raises:
    ValueError: If the text is not valid JSON.
  """

  def convert(mapping):
    if mapping.get('__tuple__') is True and 'items' in mapping:
      return tuple(mapping['items'])
    if mapping.get('__numpy__') is True and 'items' in mapping:
      return np.array(mapping['items'])
    return mapping

  return json.loads(text, object_hook=convert)


def update_cpanel(
  cpanel: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
  """Return a control panel with some values replaced.

  Args:
    cpanel: Dict from the module of parameters.
    given: Dict of replacements; a key with a plus sign in front is added.

  Returns:
    New dict.

  Raises:
    UsageError: If a key is unknown, or its value is of another type.
  """
  result = dict(copy.deepcopy(cpanel))
  for key, value in given.items():
    if key.startswith('+'):
      result[key[1:]] = value
      continue
    if key not in cpanel:
      raise errors.UsageError(
        f'Key {key!r} of --cpanel is unknown. {errors.suggest(key, cpanel)} '
        f'To add it all the same, call it {"+" + key!r}.'
      )
    result[key] = schema.check_like(
      cpanel[key], value, f'Key {key!r} of --cpanel'
    )
  return result


def find_trust(args: types.SimpleNamespace) -> references.Trust:
  """Return what a session that is loaded may name: see `--trust`.

  What the user has typed for `--repeal` is trusted as well.
  """
  trust = references.parse(args.trust)
  names = references.typed(args.repeal.values())
  return dataclasses.replace(trust, names=trust.names + names)


def repeal(params: dict[str, Any], given: Mapping[str, Any]) -> None:
  """Replace values within a tree of parameters.

  Args:
    params: Nested dict, changed in place.
    given: Dict from paths such as `runner.n_epochs` to values.

  Raises:
    UsageError: If there is no such path.
  """
  for path, value in given.items():
    node, names = params, path.split('.')
    for depth, name in enumerate(names):
      known = node if isinstance(node, dict) else {}
      if name not in known:
        place = '.'.join(names[:depth]) or 'the tree'
        raise errors.UsageError(
          f'Path {path!r} of --repeal is unknown: {place} has no {name!r}. '
          f'{errors.suggest(name, known)}'
        )
      if depth < len(names) - 1:
        node = node[name]
    node[names[-1]] = value


def find_packages(params: Mapping[str, Any]) -> list[str]:
  """Return the packages of this project that a tree names parts of."""
  names = {x.split('.')[0] for x in _find_names(params)}
  return sorted({'agents'} | names & set(references.PROJECT))


def find_foreign(params: Mapping[str, Any]) -> list[str]:
  """Return what a tree names that needs `--trust` once it is stored."""
  ours = references.Trust(references.PROJECT)
  return sorted({x for x in _find_names(params) if not ours.covers(x)})


def _find_names(node: Any) -> Iterator[str]:
  """Yield modules that a tree names, and files that can hold programs."""
  if isinstance(node, (list, tuple)):
    node = dict(enumerate(node))
  if not isinstance(node, dict):
    return
  for key, value in node.items():
    if key == 'demo_file' and value:
      yield value
    elif key in ('name', 'constructor') and isinstance(value, str):
      module = value.partition(':') if ':' in value else value.rpartition('.')
      yield from module[:1] if module[1] else ()
    elif key == 'from_module' and value:
      yield value
    else:
      yield from _find_names(value)


def to_plain(params: Mapping[str, Any]) -> Any:
  """Convert a tree to built-in types; shared parts stay shared, for YAML."""
  return _to_plain(params, {})


def _to_plain(value, seen):
  if isinstance(value, dict):
    if id(value) not in seen:
      seen[id(value)] = {str(k): _to_plain(x, seen) for k, x in value.items()}
    return seen[id(value)]
  if isinstance(value, (list, tuple)):
    return [_to_plain(x, seen) for x in value]
  return plain_data.to_plain(value)


def _describe_cpanel(argv):
  """End of `--help`: modules of parameters, or the values of the one given."""
  if not {'-h', '--help'} & set(argv):
    return ''
  module = next((y for x, y in zip(argv, argv[1:]) if x == '--params'), None)
  if module is None:
    return (
      'Parameters: agents.pipeline.params.{ppo_pendulum, ppo_cheetah, '
      'ddpg_pendulum},\nbaselines_her.params.{fetch_reach, fetch_push}. With '
      '--params MODULE --help, the\nvalues that --cpanel may change are listed.'
    )
  imported = toolbox.get_module(module, references.EVERYTHING)
  cpanel = getattr(imported, 'cpanel', {})
  lines = [f'  {key}: {value!r}' for key, value in cpanel.items()]
  return '\n'.join([f'values of --cpanel for {module}:', *lines])


def _parse_mapping(flag: str, text: str) -> dict[str, Any]:
  """Return the mapping of a flag: JSON as in the original, or YAML."""
  with contextlib.suppress(ValueError):
    value = parse_json(text)
    if isinstance(value, dict):
      return value
  value = schema.parse_mapping(text, flag, '{"number_epochs": 2}')
  return parse_json(json.dumps(value, default=str))


def _check_combination(args):
  modes = [x for x in ('play', 'resume', 'custom') if getattr(args, x)]
  flags = ' and '.join(f'--{x}' for x in modes)
  if len(modes) > 1:
    raise errors.UsageError(f'{flags} exclude each other; give one of them.')
  if args.load_checkpoint and not modes:
    raise errors.UsageError(
      'Flag --load-checkpoint does not say what for; add one of --resume, '
      '--play and --custom.'
    )
  if modes and modes != ['play'] and not args.load_checkpoint:
    raise errors.UsageError(
      f'Flag {flags} needs a session; add --load-checkpoint=PATH.'
    )
  if args.create_session_only:
    for name in ('load_checkpoint', 'dry_run', *modes):
      if getattr(args, name):
        raise errors.UsageError(
          f'Flags --create-session-only and --{name.replace("_", "-")} '
          'exclude each other; leave one of them away.'
        )
  if not (args.params or args.load_checkpoint):
    raise errors.UsageError(
      'There is nothing to run; give --params with a module, such as '
      '--params agents.pipeline.params.ppo_pendulum.'
    )
  if args.load_checkpoint and (args.params or args.cpanel):
    name = 'params' if args.params else 'cpanel'
    raise errors.UsageError(
      f'Flags --load-checkpoint and --{name} exclude each other, as sessions '
      'keep their parameters; change single values with --repeal.'
    )
