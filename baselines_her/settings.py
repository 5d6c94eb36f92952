"""The command line of training: flags, settings, and early refusals.

Free of TensorFlow, so that mistakes are reported at once.
"""

import ast
import os
import types

from agents.run import errors
from agents.run import files

# Name: type, default, meaning.
FLAGS = {
  'alg': (str, 'her', 'algorithm; there is only her'),
  'env': (str, 'FetchReach-v1', 'id of a goal environment'),
  'env_type': (str, None, 'ignored; there is only robotics'),
  'seed': (int, None, 'seed of all random numbers'),
  'num_timesteps': (float, 1e6, 'environment steps of each rank'),
  'network': (str, None, 'ignored; baselines passes it to all algorithms'),
  'gamestate': (str, None, 'ignored; belongs to other environments'),
  'num_env': (int, None, 'environments of each rank (default 1)'),
  'reward_scale': (float, 1.0, 'factor of the rewards shown'),
  'save_path': (str, None, 'file for all variables at the end'),
  'save_video_interval': (int, 0, 'steps between two videos; 0 for none'),
  'save_video_length': (int, 200, 'steps per video'),
  'log_path': (str, None, 'folder of the run; by default a temporary one'),
  'play': (bool, False, 'show the trained agent'),
  'play_episodes': (
    int,
    None,
    'episodes to show; 0 for no end (default 0 in a window, 5 in a file)',
  ),
  'policy_dir': (
    str,
    None,
    'folder of pickled policies (default <log_path>/policies)',
  ),
  'resume': (
    bool,
    None,
    'True: there has to be a run in log_path to continue; False: there may '
    'be none; by default a run is continued if there is one',
  ),
  'num_cpu': (int, 1, 'ranks to start with mpirun'),
}

# Named arguments of `baselines_her.her.learn` for the command line, and
# settings that are read by their names without being among the defaults.
_LEARN = {
  'replay_strategy': str,
  'policy_save_interval': int,
  'clip_return': bool,
  'demo_file': str,
  'override_params': dict,
  'load_path': str,
}
_EXTRA = {
  'gamma': float,
  'T': int,
  'lr': float,
  # Fractions make sense, although the defaults are whole numbers.
  'norm_clip': float,
  'replay_k': float,
}

# Arguments of `learn` whose default is None.
_OPTIONAL = ('demo_file', 'load_path', 'override_params')
# Switches that are numbers.
_SWITCHES = ('bc_loss', 'q_filter')


def parse_args(argv):
  """Split the command line into known flags and the rest.

  Args:
    argv: List that begins with the name of the program.

  Returns:
    Tuple of an object with an attribute per flag, and the list of arguments
    that are not among the flags, in order.

  Raises:
    UsageError: If a flag has a value of another type.
  """
  from absl import flags

  # Flags of our own, as the global ones collide with other programs.
  values = flags.FlagValues()
  values.set_gnu_getopt(True)
  define = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
  }
  for name, (kind, default, text) in FLAGS.items():
    define[kind](name, default, text, flag_values=values)
  try:
    rest = values(list(argv), known_only=True)[1:]
  except flags.Error as error:
    raise errors.UsageError(
      f'{" ".join(str(error).split())}; see --help.'
    ) from None
  args = types.SimpleNamespace(**{x: getattr(values, x) for x in FLAGS})
  return args, rest


def parse_cmdline_kwargs(unknown):
  """Further settings from arguments `--name=value` and `--name value`.

  Values are Python literals where they can be read as such. Names without
  value and words without name are dropped, as in the original.

  Returns:
    Dict of keyword arguments for `baselines_her.her.learn`.
  """
  result = {}
  name = None
  for word in unknown:
    if word.startswith('--'):
      name, equals, text = word[2:].partition('=')
      if equals:
        result[name] = _parse_value(text)
        name = None
    elif name:
      result[name] = _parse_value(word)
      name = None
  return result


def split_settings(kwargs):
  """Arrange settings of the command line so that they take effect.

  The original silently ignores settings of the agent unless they are within
  `override_params`; they are moved there.

  Args:
    kwargs: Dict of `parse_cmdline_kwargs`.

  Returns:
    Dict of arguments for `baselines_her.her.learn`.

  Raises:
    UsageError: If a name is unknown or a value has another type.
  """
  from baselines_her import config

  kinds = {k: type(v) for k, v in config.DEFAULT_PARAMS.items()}
  known = {**kinds, **_EXTRA, **_LEARN}
  result, override = {}, {}
  for name, value in _flatten(kwargs, known):
    value = _check_type(name, value, known[name])
    if name in _LEARN or name in ('gamma', 'T'):
      result[name] = value
    elif name != 'rollout_batch_size':
      override[name] = value
    else:
      raise errors.UsageError(
        'Parameter rollout_batch_size is the number of environments; set it '
        'with --num_env.'
      )
  check_values(result, override)
  if override:
    result['override_params'] = override
  return result


def check_paths(args, kwargs):
  """Make sure that everything can be read and written.

  Raises:
    UsageError: If not.
  """
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
  load_path = kwargs.get('load_path')
  if load_path is not None:
    _check_readable('load_path', load_path)
  if args.save_video_interval:
    _check_video()


def check_flags(args):
  """Make sure that the values of flags make sense.

  Raises:
    UsageError: If not.
  """
  check_algorithm(args.alg)
  lowest = {
    'num_timesteps': 0,
    'num_env': 1,
    'save_video_interval': 0,
    'save_video_length': 1,
    'play_episodes': 0,
    'num_cpu': 1,
  }
  for name, low in lowest.items():
    value = getattr(args, name)
    if value is not None and not low <= value < float('inf'):
      raise errors.UsageError(f'Flag --{name} is {value}; give at least {low}.')
  if args.seed is not None and args.seed < 0:
    raise errors.UsageError(f'Flag --seed is {args.seed}; give at least 0.')


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


def describe():
  """Text of `--help`: all flags and settings with their defaults."""
  from baselines_her import config

  lines = []
  for name, (kind, default, text) in FLAGS.items():
    shown = '' if default is None else f' (default {default})'
    lines.append(f'  --{name}={kind.__name__.upper()}: {text}{shown}')
  lines += ['', 'settings, as --name=value:']
  for name, value in config.DEFAULT_PARAMS.items():
    if name != 'rollout_batch_size':
      lines.append(f'  {name} (default {value!r})')
  lines.append(f'  {", ".join([x for x in _LEARN if x != "replay_strategy"])}')
  lines.append('  lr: both learning rates')
  lines.append(
    "  gamma: discount factor (default 1 - 1 / environment's time limit)"
  )
  lines.append("  T: time limit (default the environment's)")
  lines += ['', 'demo_file and load_path are pickles, which can run programs:']
  lines.append('open only those that you trust. Checkpoints are plain data.')
  return '\n'.join(lines)


def _flatten(kwargs, known):
  """Pairs of names and values, those within `override_params` included."""
  for name, value in kwargs.items():
    if name not in known:
      raise errors.UsageError(
        f'Setting --{name} is unknown. {errors.suggest(name, {*known, *FLAGS})}'
      )
    if value is None and name in _OPTIONAL:
      continue
    if name == 'override_params':
      value = _check_type(name, value, dict)
      unknown = [x for x in value if x not in known or x in _LEARN]
      if unknown:
        raise errors.UsageError(
          f'Setting {unknown[0]!r} in override_params is unknown. '
          f'{errors.suggest(unknown[0], set(known) - set(_LEARN))}'
        )
      yield from value.items()
    else:
      yield name, value


def _check_type(name, value, kind):
  """Value in the type that is wanted, where nothing is lost by that."""
  is_bool = isinstance(value, bool)
  if kind is float and isinstance(value, int) and not is_bool:
    return float(value)
  if kind is int and isinstance(value, float) and value.is_integer():
    return int(value)
  if is_bool and name in _SWITCHES:
    return int(value)
  if kind is bool and isinstance(value, (int, float)) and value in (0, 1):
    return bool(value)
  if kind is str and name in ('demo_file', 'load_path'):
    value = str(value)
  if name == 'max_u' and isinstance(value, list):
    return value
  if not isinstance(value, kind) or (is_bool and kind is not bool):
    wanted = 'True or False' if kind is bool else f'of type {kind.__name__}'
    raise errors.UsageError(
      f'Setting --{name} is {value!r}; it has to be {wanted}.'
    )
  return value


def check_values(result, override):
  """Make sure that the values of settings make sense.

  Args:
    result: Dict of further arguments of `her.learn`.
    override: Dict of settings that differ from `DEFAULT_PARAMS`.

  Raises:
    UsageError: If not.
  """
  from baselines_her import config
  from baselines_her import her_sampler

  strategy = result.get('replay_strategy')
  if strategy is not None and strategy not in her_sampler.STRATEGIES:
    raise errors.UsageError(
      f'Setting --replay_strategy is {strategy!r}; use one of '
      f'{", ".join(her_sampler.STRATEGIES)}.'
    )
  _check_bounds({**override, **result})
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


def _check_bounds(values):
  """Make sure that numbers are not too small or large.

  Raises:
    UsageError: Naming the first one that is.
  """
  positive = (
    'hidden buffer_size batch_size n_cycles n_batches n_test_rollouts '
    'num_demo Q_lr pi_lr lr'
  )
  for name in positive.split():
    if name in values and not values[name] > 0:
      raise errors.UsageError(
        f'Setting --{name} is {values[name]}; it has to be positive.'
      )
  for name, low in (('layers', 0), ('noise_eps', 0), ('replay_k', 0), ('T', 2)):
    if name in values and not values[name] >= low:
      raise errors.UsageError(
        f'Setting --{name} is {values[name]}; give at least {low}.'
      )
  for name in ('random_eps', 'polyak', 'gamma'):
    if name in values and not 0 <= values[name] <= 1:
      raise errors.UsageError(
        f'Setting --{name} is {values[name]}; it has to lie between 0 and 1.'
      )
  for name in _SWITCHES:
    if name in values and values[name] not in (0, 1):
      raise errors.UsageError(
        f'Setting --{name} is {values[name]}; it has to be 0 or 1.'
      )


def _check_writable(folder, name):
  probe = os.path.join(folder, f'.writable-{os.getpid()}')
  try:
    with files.atomic_write(probe):
      pass
    os.remove(probe)
  except OSError as error:
    raise errors.UsageError(
      f'Cannot write to {folder!r} for --{name}: {error.strerror}. Choose '
      'another path.'
    ) from None


def _check_readable(name, path):
  try:
    open(os.path.expanduser(path), 'rb').close()
  except OSError as error:
    raise errors.UsageError(
      f'Cannot read {path!r} of --{name}: {error.strerror}.'
    ) from None


def _check_video():
  try:
    import imageio_ffmpeg  # noqa: F401
  except ImportError:
    raise errors.UsageError(
      'Videos need the extra viz: pip install "reference-agents[viz]".'
    ) from None


def _parse_value(text):
  try:
    return ast.literal_eval(text)
  except (ValueError, SyntaxError, MemoryError, RecursionError):
    return text
