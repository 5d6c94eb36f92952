"""The command line of sessions, and overrides of their parameters.

Free of TensorFlow, so that mistakes are reported at once.
"""

import argparse
import copy
import dataclasses
import json
import sys
import types

import numpy as np

from agents.pipeline import toolbox
from agents.run import errors
from agents.run import plain_data
from agents.run import references

_DEFAULT_FOLDER = '~/logdir/sessions'


class _Parser(argparse.ArgumentParser):
  def error(self, message):
    raise errors.UsageError(f'{message}. See {self.prog} --help.')


def parse_args(argv=None):
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
  parser = _define_parser(_describe_cpanel(argv))
  args = types.SimpleNamespace(**vars(parser.parse_args(argv)))
  _check_combination(args)
  return args


def parse_json(text):
  """Data from JSON, with tuples and arrays where the text says so.

  `{"__tuple__": true, "items": [...]}` becomes a tuple, `{"__numpy__": true,
  "items": ...}` an array.

  Raises:
    ValueError: If the text is no JSON.
  """

  def convert(mapping):
    if mapping.get('__tuple__') is True and 'items' in mapping:
      return tuple(mapping['items'])
    if mapping.get('__numpy__') is True and 'items' in mapping:
      return np.array(mapping['items'])
    return mapping

  return json.loads(text, object_hook=convert)


def update_cpanel(cpanel, given):
  """Control panel with some values replaced.

  Args:
    cpanel: Dict from the module of parameters.
    given: Dict of replacements; a key with a plus sign in front is added.

  Returns:
    New dict.

  Raises:
    UsageError: If a key is unknown, or its value is of another type.
  """
  result = copy.deepcopy(cpanel)
  for key, value in given.items():
    if key.startswith('+'):
      result[key[1:]] = value
      continue
    if key not in cpanel:
      raise errors.UsageError(
        f'Key {key!r} of --cpanel is unknown. {errors.suggest(key, cpanel)} '
        f'To add it all the same, call it {"+" + key!r}.'
      )
    if not _fits(value, cpanel[key]):
      raise errors.UsageError(
        f'Key {key!r} of --cpanel is {value!r}; it has to be like '
        f'{cpanel[key]!r}.'
      )
    if type(cpanel[key]) in (int, float) and value is not None:
      value = type(cpanel[key])(value)
    result[key] = value
  return result


def find_trust(args):
  """What a session that is loaded may name: see `--trust`.

  What the user has typed for `--repeal` is trusted as well.
  """
  trust = references.parse(args.trust)
  names = references.typed(args.repeal.values())
  return dataclasses.replace(trust, names=trust.names + names)


def repeal(params, given):
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


def find_packages(params):
  """Packages of this project that a tree of parameters names parts of."""
  names = {x.split('.')[0] for x in _find_names(params)}
  return sorted({'agents'} | names & set(references.PROJECT))


def find_foreign(params):
  """What a tree names that needs `--trust` once it is stored."""
  ours = references.Trust(references.PROJECT)
  return sorted({x for x in _find_names(params) if not ours.covers(x)})


def _find_names(node):
  """Modules that a tree names, and files that can hold programs."""
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


def to_plain(params):
  """A tree in built-in types; its shared parts stay shared, for YAML."""
  return _to_plain(params, {})


def _to_plain(value, seen):
  if isinstance(value, dict):
    if id(value) not in seen:
      seen[id(value)] = {str(k): _to_plain(x, seen) for k, x in value.items()}
    return seen[id(value)]
  if isinstance(value, (list, tuple)):
    return [_to_plain(x, seen) for x in value]
  return plain_data.to_plain(value)


def _define_parser(description):
  parser = _Parser(
    prog='python -m scripts.main',
    description='Train, continue or show an agent: explorer -> memory -> '
    'agents,\nin a session folder that holds everything about the run.',
    epilog=description,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add, yes = parser.add_argument, {'action': 'store_true'}
  add('--params', default='', metavar='MODULE', help='module of parameters')
  add(
    '--cpanel', type=_mapping, default={}, metavar='JSON', help='its overrides'
  )
  add(
    '--repeal',
    type=_mapping,
    default={},
    metavar='JSON',
    help='overrides of the whole tree, such as {"runner.n_epochs": 5}',
  )
  add(
    '--load-checkpoint',
    default='',
    metavar='PATH',
    help='checkpoint, or session whose newest checkpoint is taken',
  )
  add('--resume', **yes, help='continue training in the same session')
  add('--play', **yes, help='show the policy that is stored or initialised')
  add(
    '--play-episodes',
    type=int,
    default=5,
    metavar='N',
    help='episodes to show; 0 for no end (default 5)',
  )
  add(
    '--trust',
    action='append',
    default=[],
    metavar='MODULE',
    help=references.HELP,
  )
  add('--custom', **yes, help='call the method custom of the runner')
  add('--create-session-only', **yes, help='write checkpoint 0, then exit')
  add('--dry-run', **yes, help='leave nothing on disk')
  _add_folder_flags(add)
  _add_watching_flags(add)
  return parser


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
  cpanel = getattr(_import_typed(module), 'cpanel', {})
  lines = [f'  {key}: {value!r}' for key, value in cpanel.items()]
  return '\n'.join([f'values of --cpanel for {module}:', *lines])


def _import_typed(module):
  return toolbox.get_module(module, references.EVERYTHING)


def _add_folder_flags(add):
  add(
    '--session-path',
    default=_DEFAULT_FOLDER,
    metavar='FOLDER',
    help=f'parent of all sessions (default {_DEFAULT_FOLDER})',
  )
  add('--session-name', default='', metavar='NAME', help='by default made up')
  add(
    '--save-modules',
    nargs='+',
    default=[],
    metavar='PACKAGE',
    help='packages to copy into the session',
  )
  add('--msg', default='', metavar='TEXT', help='remark, kept with parameters')


def _add_watching_flags(add):
  yes = {'action': 'store_true'}
  add(
    '--log-level',
    type=int,
    default=1,
    choices=range(5),
    help='0 debug, 1 info, 2 warn, 3 error, 4 fatal (default 1)',
  )
  add(
    '--profiler-level',
    type=int,
    default=-1,
    metavar='N',
    help='depth of the scopes that are timed (default -1, all)',
  )
  add('--tensorboard', **yes, help='start a TensorBoard server')
  add('--visdom', **yes, help='draw live curves with visdom')
  add(
    '--visdom-port',
    type=int,
    default=8097,
    metavar='N',
    help='of a server that runs, or to start one (default 8097)',
  )
  add('--no-monitor-cpu', **yes, help='do not log CPU and memory')
  add('--no-monitor-gpu', **yes, help='do not log GPUs')
  for name in ('--monitor-cpu', '--monitor-gpu'):
    add(name, **yes, help=argparse.SUPPRESS)


def _mapping(text):
  try:
    value = parse_json(text)
  except ValueError as error:
    raise argparse.ArgumentTypeError(
      f'{text!r} is no JSON ({error}); give something like '
      '\'{"number_epochs": 2}\''
    ) from None
  if not isinstance(value, dict):
    raise argparse.ArgumentTypeError(
      f'{text!r} is no mapping; give something like \'{{"number_epochs": 2}}\''
    )
  return value


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
  if args.play_episodes < 0:
    raise errors.UsageError(
      f'Flag --play-episodes is {args.play_episodes}; give at least 0.'
    )


def _fits(value, default):
  """Whether a value is of the type of the default; numbers are alike."""
  if default is None or value is None:
    return True
  if isinstance(default, bool) or isinstance(value, bool):
    return isinstance(value, bool) and isinstance(default, bool)
  if isinstance(default, int):
    return isinstance(value, (int, float)) and value == int(value)
  if isinstance(default, float):
    return isinstance(value, (int, float))
  if isinstance(default, (list, tuple)):
    return isinstance(value, (list, tuple))
  return isinstance(value, type(default))
