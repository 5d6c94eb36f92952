"""Command line flags that programs in one process do not share."""

import sys

from agents.run import errors


def parse(program, description, defaults, argv=None):
  """Read flags of the command line.

  Every call has flags of its own, so programs may be imported together.

  Args:
    program: How users start the program.
    description: Text for `--help`.
    defaults: Dict from name to a tuple of the type (str, int, float, bool, or
      list for flags that can be repeated), the default and a line of help.
    argv: List of arguments after the name of the program; those of the
      process by default.

  Returns:
    Object with an attribute per flag.

  Raises:
    UsageError: If a flag is unknown or has a value of another type.
    SystemExit: After `--help`, with code 0.
  """
  from absl import flags

  values = flags.FlagValues()
  values.set_gnu_getopt(True)
  define = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
    list: flags.DEFINE_multi_string,
  }
  for name, (kind, default, text) in defaults.items():
    define[kind](name, default, text, flag_values=values)
  argv = list(sys.argv[1:] if argv is None else argv)
  if {'--help', '-h', '-help', '--helpfull'} & set(argv):
    print(_describe(program, description, defaults))
    raise SystemExit(0)
  try:
    rest = values([program, *argv])[1:]
  except flags.UnrecognizedFlagError as error:
    raise errors.UsageError(
      f'Flag --{error.flagname} is unknown. '
      f'{errors.suggest(error.flagname, defaults)}'
    ) from None
  except flags.Error as error:
    raise errors.UsageError(f'{error}. See {program} --help.') from None
  if rest:
    raise errors.UsageError(
      f'Argument {rest[0]!r} is no flag; flags look like --name=value.'
    )
  return values


def _describe(program, description, defaults):
  lines = [f'usage: {program} [flags]', '', description.strip(), '', 'flags:']
  for name, (kind, default, text) in defaults.items():
    value = '' if default is None else f' (default {default})'
    lines.append(f'  --{name}={kind.__name__.upper()}')
    lines.append(f'      {text}{value}')
  return '\n'.join(lines)
