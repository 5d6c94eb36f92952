"""Command line flags of programs, in `tf.app.flags` or argparse.

`tf.app.flags` is `absl.flags`, which does not need TensorFlow, so that errors
in a command are reported before TensorFlow is imported.

A program has a function that defines its flags by `tf.app.flags.DEFINE_*` in
the `FlagValues` that it is given. They are in `tf.app.flags.FLAGS` only while
the program runs, so that programs can be imported beside each other.
"""

import argparse
import contextlib
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import absl.flags

from agents.run import errors, schema

HELP = {'--help', '-h', '-help', '--helpfull'}
# Indentation of the meaning of a flag.
_IN = ' ' * 6
# What absl adds to the meaning of a flag.
_REPEAT = '; repeat this option to specify a list of values'
_TYPES = {'string': 'STR', 'multi string': 'LIST'}
# Meaning of `--wandb`; the mirror itself is imported where it is used.
WANDB = 'Weights & Biases project to send the scalars to.'

# Function that defines flags.
Define = Callable[[absl.flags.FlagValues], object]


class Literal(absl.flags.ArgumentParser):
  """Parser of `DEFINE` for a Python literal, YAML, or any other text."""

  def parse(self, argument: Any) -> Any:
    """Return the value of a text; see `schema.parse_value`."""
    if not isinstance(argument, str):
      return argument
    if argument.startswith('--'):
      raise ValueError('the value is missing; write --name=value')
    return schema.parse_value(argument)

  def flag_type(self) -> str:
    """Return the word for `--help`."""
    return 'value'


@contextlib.contextmanager
def parsed(
  program: str,
  description: str | None,
  define: Define,
  argv: Sequence[str] | None = None,
  more: Callable[[], Iterable[str]] = list,
) -> Iterator[list[str]]:
  """Parse a command line into `tf.app.flags.FLAGS` for a `with` block.

  Args:
    program: Command that users type to start the program.
    description: Text for `--help`.
    define: Function that defines the flags of the program.
    argv: List of arguments after the program name; those of the process by
      default.
    more: Function that returns further lines for `--help`; called when the
      other flags are parsed.

  Yields:
    List of words for `tf.app.run`: the name of the program.

  Raises:
    UsageError: If a flag is unknown or its value is not allowed.
    SystemExit: After `--help`, with code 0.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  values = absl.flags.FLAGS
  others = set(values)
  define(values)
  try:
    names = [x for x in values if x not in others]
    if HELP & set(argv):
      # Help does not depend on whether the rest is right.
      with contextlib.suppress(errors.UsageError):
        _parse(program, values, names, [x for x in argv if x not in HELP])
      lines = [f'usage: {program} [flags]', '', (description or '').strip()]
      lines += ['', 'flags:', *_describe([values[x] for x in names]), *more()]
      print('\n'.join(lines))
      raise SystemExit(0)
    rest = _parse(program, values, names, argv)
    if rest:
      raise errors.UsageError(
        f'Unexpected argument {rest[0]!r}; write flags as --name=value.'
      )
    yield [program]
  finally:
    for name in {*values} - others:
      delattr(values, name)


def _parse(program, values, names, argv):
  """Parse the flags; return the remaining arguments."""
  try:
    return values([program, *argv])[1:]
  except absl.flags.UnrecognizedFlagError as error:
    raise errors.UsageError(
      f'Flag --{error.flagname} is unknown. '
      f'{errors.suggest(error.flagname, names)}'
    ) from None
  except absl.flags.Error as error:
    text = ' '.join(str(error).split())
    raise errors.UsageError(f'{text}. See {program} --help.') from None


def limit(name: str, kind: Any, flag_values: absl.flags.FlagValues) -> None:
  """Let a flag that has been defined only have values of a declared type.

  Args:
    name: Name of the flag.
    kind: Type, such as `schema.Seed`. None is allowed, too.
    flag_values: Where the flag is defined.
  """

  def check(value):
    if value is not None:
      schema.convert(kind, value, f'Flag --{name}')
    return True

  absl.flags.register_validator(name, check, flag_values=flag_values)


def read(define: Define, given: absl.flags.FlagValues | None = None) -> Any:
  """Return the flags of a program, with defaults for undefined flags.

  Args:
    define: Function that defines the flags of the program.
    given: `tf.app.flags.FLAGS`, where notebooks may have defined some of the
      flags with other defaults; None for the defaults of the program.

  Returns:
    `FlagValues`, a copy with an attribute per flag; `[name].present` tells
    whether it was on the command line.

  Raises:
    UsageError: If the value of a flag is not allowed.
  """
  result = absl.flags.FlagValues()
  define(result)
  result.mark_as_parsed()
  for name in result:
    if given is not None and name in given:
      if given[name].value != result[name].value:
        setattr(result, name, given[name].value)
      result[name].present = given[name].present
  return result


def check(
  declared: type[schema.Settings], args: object, dashes: bool = False
) -> None:
  """Check and convert the values of all flags, even if set by code.

  Args:
    declared: Declaration of the flags.
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
    declared: Declaration of the flags; `--help` shows the title of a flag as
      its value, and hides flags without a meaning. Booleans default to False;
      list flags can be repeated.
  """
  for name in declared.names():
    flag = '--' + name.replace('_', '-')
    kind, default = declared.base(name), declared.default(name)
    text = declared.meaning(name) or argparse.SUPPRESS
    if kind is bool:
      parser.add_argument(flag, action='store_true', help=text)
      continue
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


def meaning(flag: absl.flags.Flag) -> str:
  """Return the meaning of a flag as the program has given it."""
  return ' '.join((flag.help or '').split()).removesuffix(_REPEAT)


def _describe(defined):
  """Return the lines of `--help` that describe flags."""
  lines = []
  for flag in defined:
    if isinstance(flag.parser, Literal):
      # Settings have a table of their own.
      continue
    kind = _TYPES.get(flag.flag_type(), flag.flag_type().upper())
    lines.append(f'  --{flag.name}={kind}')
    value = '' if flag.default is None else f' (default {flag.default})'
    text = meaning(flag) + value
    lines += textwrap.wrap(text, 80, initial_indent=_IN, subsequent_indent=_IN)
  return lines
