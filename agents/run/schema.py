"""Declared settings: type, default, bounds and meaning in one place.

Each system derives a class from `Settings`, with a field for each setting. The
class provides validation, defaults, tables for `--help`, and one-sentence
errors. Overrides are YAML, see `parse_mapping`.
"""

import ast
import math
import numbers
import pathlib
import re
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

import annotated_types
import numpy as np
import pydantic
from typing_extensions import Self

from agents.run import errors, yaml_text


def described(text: str) -> Any:
  """Return an annotation that describes the allowed values of a type.

  Args:
    text: What to give, as part of a sentence.
  """

  def validate(value, handler):
    try:
      return handler(value)
    except pydantic.ValidationError:
      raise ValueError(f'give {text}') from None

  return pydantic.WrapValidator(validate)


_NUMBER = re.compile(r'\s*[-+]?\.?\d[\d_]*\.?[\d_]*(e[-+]?\d+)?\s*', re.I)


def _to_whole(value: Any) -> Any:
  """Whole numbers, among them `5e7`, as int; booleans are not numbers."""
  value = _to_number(value)
  if not (math.isfinite(value) and float(value).is_integer()):
    raise ValueError('give a whole number')
  return int(value)


def _to_number(value: Any) -> Any:
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    quoted = isinstance(value, str) and _NUMBER.fullmatch(value)
    advice = ', not a text; PyYAML reads 1e-4 as one, but 1.0e-4 as a number'
    raise ValueError(f'give a number{advice if quoted else ""}')
  return value if isinstance(value, (int, float)) else float(value)


def one_of(names: Iterable[str]) -> Any:
  """Return a type that allows some names, or `module:name` for user code."""
  known = list(names)

  def check(value):
    own = callable(value) or (isinstance(value, str) and ':' in value)
    if not own and value not in known:
      raise ValueError(
        f'give one of {", ".join(known)}, or module:name of your own'
      )
    return str(value) if isinstance(value, str) else value

  return Annotated[str, pydantic.PlainValidator(check)]


def _to_file_name(value: str) -> str:
  if '/' in value or value in ('.', '..'):
    raise ValueError('give the name of a folder, not a path')
  return value


WHOLE = pydantic.BeforeValidator(_to_whole)
Whole = Annotated[int, WHOLE]
Count = Annotated[Whole, annotated_types.Interval(ge=0, le=2**63 - 1)]
Positive = Annotated[Whole, annotated_types.Interval(ge=1, le=2**63 - 1)]
# TensorFlow counts the entries of a dimension in 32 bits.
Size = Annotated[Whole, annotated_types.Interval(ge=1, le=2**31 - 1)]
# TensorFlow creates any number of threads, and crashes.
Threads = Annotated[Whole, annotated_types.Interval(ge=1, le=1024)]
# What TensorFlow, NumPy and the environments all take.
Seed = Annotated[Whole, annotated_types.Interval(ge=0, le=2**31 - 1)]
Number = Annotated[float, pydantic.BeforeValidator(_to_number)]
Amount = Annotated[Number, annotated_types.Ge(0)]
Fraction = Annotated[Number, annotated_types.Interval(ge=0, le=1)]
Finite = Annotated[Number, pydantic.AllowInfNan(False)]
FiniteAmount = Annotated[Finite, annotated_types.Ge(0)]
Rate = Annotated[Finite, annotated_types.Gt(0)]
Flag = Annotated[
  bool,
  pydantic.Strict(),
  pydantic.BeforeValidator(lambda x: bool(x) if isinstance(x, np.bool_) else x),
]
Name = Annotated[str, annotated_types.MinLen(1)]
FileName = Annotated[str, pydantic.AfterValidator(_to_file_name)]
Path = str | pathlib.Path


def setting(
  default: Any, meaning: str = '', fixed: str | None = None, **more: Any
) -> Any:
  """Declare a setting; assign the result to a field of `Settings`.

  Args:
    default: Default value.
    meaning: Short description for `--help`.
    fixed: Reason why a run keeps its initial value; None if the value may
      change when the run is continued.
    **more: Further arguments of `pydantic.Field`.
  """
  return pydantic.Field(
    default,
    description=meaning,
    json_schema_extra={'fixed': fixed},
    validate_default=False,
    **more,
  )


class Settings(pydantic.BaseModel):
  """Base class of declarations.

  Attributes:
    called: How errors name a setting.
    elsewhere: Dict from names that other versions of an original have to
      sentences about what takes their place.
  """

  model_config = pydantic.ConfigDict(
    extra='forbid', validate_assignment=True, protected_namespaces=()
  )
  called: ClassVar[str] = 'Setting {!r}'
  elsewhere: ClassVar[Mapping[str, str]] = {}

  @classmethod
  def names(cls) -> list[str]:
    """Return the names of all settings in order of declaration."""
    return list(cls.model_fields)

  @classmethod
  def default(cls, name: str) -> Any:
    """Return a copy of the default value of a setting."""
    return cls.model_fields[name].get_default()

  @classmethod
  def defaults(cls) -> dict[str, Any]:
    """Return copies of all default values by name."""
    return dict(cls())

  @classmethod
  def meaning(cls, name: str) -> str:
    """Return the short description of a setting."""
    return cls.model_fields[name].description or ''

  @classmethod
  def fixed(cls, name: str) -> str | None:
    """Return why a run cannot change a setting; None if it can."""
    extra: Any = cls.model_fields[name].json_schema_extra
    return extra['fixed']

  @classmethod
  def check(
    cls,
    given: Mapping[str, Any],
    called: str | None = None,
    more: Iterable[str] = (),
  ) -> dict[str, Any]:
    """Return the given values in their declared types, without defaults.

    Args:
      given: Values by name.
      called: How errors name a setting; by default, as the class says.
      more: Further names to suggest to the user.

    Raises:
      UsageError: Names the first unknown setting and similar known ones, or
        the first invalid value.
    """
    called = called or cls.called
    for name in given:
      if name not in cls.model_fields:
        advice = cls.elsewhere.get(name) or errors.suggest(
          str(name), [*cls.model_fields, *more]
        )
        raise errors.UsageError(f'{called.format(name)} is unknown. {advice}')
    try:
      checked = cls.model_validate(dict(given))
    except pydantic.ValidationError as error:
      name = str(error.errors()[0]['loc'][0])
      raise _explain(error, called.format(name), given[name]) from None
    return {name: getattr(checked, name) for name in given}

  @classmethod
  def read(
    cls,
    given: Mapping[str, Any],
    called: str | None = None,
    more: Iterable[str] = (),
  ) -> Self:
    """Return the given values, with defaults for all others; see `check`."""
    return cls.model_construct(**cls.check(given, called, more))

  @classmethod
  def base(cls, name: str) -> type:
    """Return the type of a setting, such as `int`, without bounds or None."""
    kind = cls.model_fields[name].annotation
    while typing.get_origin(kind) is not None:
      origin, args = typing.get_origin(kind), typing.get_args(kind)
      if origin in (list, dict, tuple):
        return origin
      kind = type(args[0]) if origin is typing.Literal else args[0]
    assert isinstance(kind, type), kind
    return kind

  @classmethod
  def table(
    cls,
    names: Iterable[str] | None = None,
    values: Mapping[str, Any] | None = None,
  ) -> list[str]:
    """Return the lines of `--help`: name, value and meaning of each setting.

    Args:
      names: Settings to show; all by default.
      values: Values to show instead of the defaults.
    """
    shown = {**cls.defaults(), **(values or {})}
    names = cls.names() if names is None else list(names)
    width = max(24, *(len(x) for x in names))
    return [
      f'  {x:{width}} {_shorten(shown[x]):12} {cls.meaning(x)}'.rstrip()
      for x in names
    ]


def convert(kind: Any, value: Any, called: str) -> Any:
  """Convert a value to a declared type, such as `Seed`.

  Args:
    kind: Type.
    value: Given value.
    called: How errors name the setting.

  Raises:
    UsageError: If the type does not allow the value.
  """
  try:
    return pydantic.TypeAdapter(kind).validate_python(value)
  except pydantic.ValidationError as error:
    raise _explain(error, called, value) from None


def _explain(error, called, value):
  words = error.errors()[0]['msg'].removeprefix('Value error, ')
  return errors.UsageError(
    f'{called} is {value!r}: {words[:1].lower()}{words[1:]}.'
  )


def check_like(example: Any, value: Any, called: str) -> Any:
  """Convert a value to the type of an example.

  Args:
    example: Value of the required type; None allows any. Numeric types convert
      if no information is lost, and lists and tuples convert.
    value: Given value.
    called: How errors name the setting.

  Raises:
    UsageError: If the value has another type.
  """
  if example is None:
    return value
  kinds: dict[type, Any] = {bool: Flag, int: Whole, float: Number}
  adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(
    kinds.get(type(example), type(example)),
    config={'arbitrary_types_allowed': True},
  )
  try:
    return adapter.validate_python(value)
  except pydantic.ValidationError:
    raise errors.UsageError(
      f'{called} is {value!r}; it must be like {example!r}.'
    ) from None


def parse_value(text: str) -> Any:
  """Parse a Python literal or YAML; return any other text unchanged.

  YAML strings that are neither numbers, booleans nor in brackets are returned
  unchanged.
  """
  try:
    return ast.literal_eval(text)
  except (ValueError, SyntaxError, MemoryError, RecursionError):
    pass
  try:
    value = yaml_text.parse(text)
  except ValueError:
    return text
  brackets = text.lstrip()[:1] in ('[', '{')
  simple = isinstance(value, (bool, int, float)) or text == 'null'
  return value if simple or brackets else text


def parse_mapping(text: str, flag: str, example: str) -> dict[str, Any]:
  """Parse the overrides in the value of a flag; an empty text has none.

  Args:
    text: YAML mapping.
    flag: Name of the flag, for messages.
    example: Valid text to show in messages.

  Raises:
    UsageError: If the text is not a YAML mapping.
  """
  try:
    values = yaml_text.parse(text)
  except ValueError as error:
    raise errors.UsageError(
      f'Flag --{flag} is not valid YAML: {error}. Give a mapping such as '
      f'{example!r}.'
    ) from None
  values = {} if values is None else values
  if not isinstance(values, dict):
    raise errors.UsageError(
      f'Flag --{flag} is {values!r}; give a mapping such as {example!r}.'
    )
  _check_colons(values, flag)
  return values


def _check_colons(values, flag):
  """Refuse `{name:3}`, which YAML reads as a name without a value."""
  for key, value in values.items():
    if isinstance(value, dict):
      _check_colons(value, flag)
    elif value is None and ':' in str(key):
      raise errors.UsageError(
        f'Flag --{flag} contains {key!r}; write a space after the colon.'
      )


def _shorten(value: Any) -> str:
  return '-' if value is None else str(value).replace("'", '')
