"""Command line flags, built on `tf.app.flags` and `tf.app.run`.

Both come from absl and do not need TensorFlow, so that errors in a command are
reported before TensorFlow is imported.
"""

import argparse
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import absl.app
import absl.flags

from agents.run import errors, schema

HELP = {'--help', '-h', '-help', '--helpfull'}
# Before the meaning of a flag.
_IN = ' ' * 6
# Meaning of `--wandb`; the mirror itself is imported where it is used.
WANDB = 'Weights & Biases project to send the scalars to.'


def run(
  program: str,
  description: str,
  declared: type[schema.Settings],
  main: Callable[[list[str]], None],
  argv: Sequence[str] | None = None,
  more: Iterable[str] = (),
) -> None:
  """Run a program through `tf.app.run`, with its flags in `tf.app.flags`.

  The flags exist only while the program runs, so that another program can
  follow in the same process.

  Args:
    program: Command that users type to start the program.
    description: Text for `--help`.
    declared: Declaration of the flags: strings, numbers, booleans, or lists
      for flags that can be repeated.
    main: Main function, called with the result of `read`.
    argv: List of arguments after the program name; those of the process by
      default.
    more: Further lines for `--help`.

  Raises:
    UsageError: If a flag is unknown or its value is not allowed.
    SystemExit: After `--help`, with code 0.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  if HELP & set(argv):
    lines = [f'usage: {program} [flags]', '', description.strip(), '', 'flags:']
    print('\n'.join([*lines, *describe(declared), *more]))
    raise SystemExit(0)
  # These are `tf.app.flags.FLAGS`.
  values = absl.flags.FLAGS
  _define(declared, values)
  try:
    rest = _parse(program, declared, values, argv)
    if rest:
      raise errors.UsageError(
        f'Unexpected argument {rest[0]!r}; write flags as --name=value.'
      )
    run_app(main, [program])
  finally:
    for name in declared.names():
      delattr(values, name)


def run_app(main: Callable[[list[str]], Any], argv: Sequence[str]) -> None:
  """Call `tf.app.run`, but return after success instead of exiting.

  Args:
    main: Function of the arguments that are not flags of `tf.app.flags`; its
      result is ignored.
    argv: List of arguments, starting with the program name.
  """

  def call(rest):
    main(rest)

  def parse(words):
    return absl.flags.FLAGS(words, known_only=True)

  try:
    absl.app.run(call, list(argv), flags_parser=parse)
  except SystemExit as end:
    if end.code:
      raise


def read(given: Any, declared: type[schema.Settings]) -> types.SimpleNamespace:
  """Return the flags of a program, with defaults for undefined flags.

  Args:
    given: `tf.app.flags.FLAGS`, where notebooks may have defined some flags
      with other defaults.
    declared: See `run`.

  Raises:
    UsageError: If the value of a flag is not allowed.
  """
  defined = set(given)
  result = types.SimpleNamespace(
    **{
      name: given[name].value if name in defined else declared.default(name)
      for name in declared.names()
    }
  )
  check(declared, result)
  return result


def parse_known(
  program: str, declared: type[schema.Settings], argv: Sequence[str]
) -> tuple[types.SimpleNamespace, list[str]]:
  """Split a command line into known flags and the rest.

  Args:
    program: Command that users type to start the program.
    declared: See `run`.
    argv: List of arguments after the name of the program.

  Returns:
    Tuple of an object with an attribute per flag, and the remaining arguments
    in order.

  Raises:
    UsageError: If the value of a flag is not allowed.
  """
  values = absl.flags.FlagValues()
  values.set_gnu_getopt(True)
  _define(declared, values)
  rest = _parse(program, declared, values, argv, known_only=True)
  return read(values, declared), rest


def _define(declared, values):
  """Define flags with their declared types, defaults and meanings."""
  define: dict[type, Any] = {
    str: absl.flags.DEFINE_string,
    int: absl.flags.DEFINE_integer,
    float: absl.flags.DEFINE_float,
    bool: absl.flags.DEFINE_bool,
    list: absl.flags.DEFINE_multi_string,
  }
  for name in declared.names():
    default, text = declared.default(name), declared.meaning(name)
    define[declared.base(name)](name, default, text, flag_values=values)


def _parse(program, declared, values, argv, known_only=False):
  """Parse the flags; return the remaining arguments."""
  try:
    return values([program, *argv], known_only=known_only)[1:]
  except absl.flags.UnrecognizedFlagError as error:
    declared.check({error.flagname: None}, 'Flag --{}')
    raise
  except absl.flags.Error as error:
    text = ' '.join(str(error).split())
    raise errors.UsageError(f'{text}. See {program} --help.') from None


def check(
  declared: type[schema.Settings], args: object, dashes: bool = False
) -> None:
  """Check and convert the values of all flags, even if set by code.

  Args:
    declared: See `run`.
    args: Object with an attribute per flag.
    dashes: Whether error messages use dashes instead of underscores.

  Raises:
    UsageError: If a value is not allowed; names the first such flag.
  """
  for name in declared.names():
    value = getattr(args, name)
    if value != declared.default(name):
      shown = name.replace('_', '-') if dashes else name
      checked = declared.check({name: value}, f'Flag --{shown}')
      setattr(args, name, checked[name])


def add_arguments(
  parser: argparse.ArgumentParser, declared: type[schema.Settings]
) -> None:
  """Add flags to a parser, with dashes instead of underscores.

  Args:
    parser: Parser to add to. Its results still need `check`.
    declared: See `run`; `--help` shows the title of a flag as its value, and
      hides flags without a meaning. Booleans default to False; list flags can
      be repeated.
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


def describe(declared: type[schema.Settings]) -> list[str]:
  """Return the lines of `--help` that describe flags."""
  lines = []
  for name in declared.names():
    default = declared.default(name)
    value = '' if default is None else f' (default {default})'
    lines.append(f'  --{name}={declared.base(name).__name__.upper()}')
    text = declared.meaning(name) + value
    lines += textwrap.wrap(text, 80, initial_indent=_IN, subsequent_indent=_IN)
  return lines
