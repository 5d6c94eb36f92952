"""Command line flags that programs in one process do not share."""

import argparse
import sys
import types
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from agents.run import errors
from agents.run import schema

_HELP = {'--help', '-h', '-help', '--helpfull'}


def parse(
  program: str,
  description: str,
  declared: type[schema.Settings],
  argv: Sequence[str] | None = None,
  more: Iterable[str] = (),
) -> types.SimpleNamespace:
  """Read flags of the command line.

  Every call has flags of its own, so programs may be imported together.

  Args:
    program: How users start the program.
    description: Text for `--help`.
    declared: Declaration of the flags: text, numbers, booleans, or lists for
      flags that can be repeated.
    argv: List of arguments after the name of the program; those of the
      process by default.
    more: Further lines for `--help`.

  Returns:
    Object with an attribute per flag.

  Raises:
    UsageError: If a flag is unknown or has a value that is not allowed.
    SystemExit: After `--help`, with code 0.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  if asks_for_help(argv):
    lines = [f'usage: {program} [flags]', '', description.strip(), '', 'flags:']
    print('\n'.join([*lines, *describe(declared), *more]))
    raise SystemExit(0)
  values, rest = parse_known(program, declared, argv, known_only=False)
  if rest:
    raise errors.UsageError(
      f'Argument {rest[0]!r} is not a flag; flags look like --name=value.'
    )
  return values


def parse_known(
  program: str,
  declared: type[schema.Settings],
  argv: Sequence[str],
  known_only: bool = True,
) -> tuple[types.SimpleNamespace, list[str]]:
  """Split the command line into known flags and the rest.

  Args:
    program: How users start the program.
    declared: See `parse`.
    argv: List of arguments after the name of the program.
    known_only: Whether unknown flags belong to the rest.

  Returns:
    Tuple of an object with an attribute per flag, and the list of arguments
    that are not among the flags, in order.

  Raises:
    UsageError: If a flag is unknown or has a value that is not allowed.
  """
  from absl import flags

  values = flags.FlagValues()
  values.set_gnu_getopt(True)
  define: dict[type, Any] = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
    list: flags.DEFINE_multi_string,
  }
  for name in declared.names():
    define[declared.base(name)](
      name, declared.default(name), declared.meaning(name), flag_values=values
    )
  try:
    rest = values([program, *argv], known_only=known_only)[1:]
  except flags.UnrecognizedFlagError as error:
    declared.check_names([error.flagname], 'Flag --{}')
    raise
  except flags.Error as error:
    text = ' '.join(str(error).split())
    raise errors.UsageError(f'{text}. See {program} --help.') from None
  result = types.SimpleNamespace(
    **{name: getattr(values, name) for name in declared.names()}
  )
  check(declared, result)
  return result, rest


def check(
  declared: type[schema.Settings], args: object, dashes: bool = False
) -> None:
  """Make sure that flags have allowed values, whoever has set them.

  Args:
    declared: See `parse`.
    args: Object with an attribute per flag.
    dashes: Whether the user writes dashes instead of underscores.

  Raises:
    UsageError: Naming the first flag that has not.
  """
  for name in declared.names():
    value = getattr(args, name)
    if value != declared.default(name):
      shown = name.replace('_', '-') if dashes else name
      declared.check_value(name, value, f'Flag --{shown}')


def add_arguments(
  parser: argparse.ArgumentParser, declared: type[schema.Settings]
) -> None:
  """Add flags to a parser, with dashes instead of underscores.

  Args:
    parser: Parser to add to. Its results still need `check`.
    declared: See `parse`; the title of a flag is what `--help` shows for its
      value, and flags without meaning are left out there. Booleans are False
      unless they are given; lists can be repeated, too.
  """
  for name in declared.names():
    flag = '--' + name.replace('_', '-')
    kind, default = declared.base(name), declared.default(name)
    text = declared.meaning(name) or argparse.SUPPRESS
    if kind is bool:
      parser.add_argument(flag, action='store_true', help=text)
      continue
    if default not in ('', None, []):
      text += f' (default {default})'
    how: dict[str, Any] = {'type': kind}
    if kind is list:
      how = {'action': 'extend', 'nargs': '+'}
    parser.add_argument(
      flag,
      default=default,
      metavar=declared.model_fields[name].title or kind.__name__.upper(),
      help=text,
      **how,
    )


def asks_for_help(argv: Sequence[str]) -> bool:
  """Return whether a command line asks for a description of its flags."""
  return bool(_HELP & set(argv))


def describe(declared: type[schema.Settings]) -> list[str]:
  """Return lines for `--help` about flags."""
  lines = []
  for name in declared.names():
    default = declared.default(name)
    value = '' if default is None else f' (default {default})'
    lines.append(f'  --{name}={declared.base(name).__name__.upper()}')
    lines.append(f'      {declared.meaning(name)}{value}')
  return lines
