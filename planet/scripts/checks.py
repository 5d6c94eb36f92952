"""Checks of the values of parameters.

Each takes a value and returns it, converted where that is needed, or raises a
ValueError that says what would be right.
"""

import numbers


def integer(low=None, high=None, optional=False):
  """Whole number between two limits; `5e7` counts as one."""

  def check(value):
    if value is None and optional:
      return None
    whole = _is_number(value) and float(value).is_integer()
    _require(
      whole
      and (low is None or value >= low)
      and (high is None or value <= high),
      'a whole number'
      + (f' of at least {low}' if low is not None else '')
      + (f' and at most {high}' if high is not None else '')
      + (' or null' if optional else ''),
    )
    return int(value)

  return check


def number(low=None, high=None, optional=False):
  """Number between two limits."""

  def check(value):
    if value is None and optional:
      return None
    fits = (
      _is_number(value)
      and (low is None or value >= low)
      and (high is None or value <= high)
    )
    limits = '' if low is None else f' of at least {low}'
    limits += '' if high is None else f' and at most {high}'
    _require(fits, 'a number' + limits + (' or null' if optional else ''))
    return float(value)

  return check


def boolean(value):
  """True or false."""
  _require(isinstance(value, bool), 'true or false')
  return value


def choice(*options):
  """One of several values."""

  def check(value):
    names = ', '.join(str(x) for x in options)
    _require(
      not isinstance(value, bool) and value in options, f'one of {names}'
    )
    return value

  return check


def text(value):
  """Non-empty text."""
  _require(isinstance(value, str) and value, 'a name')
  return value


def name_or_number(value):
  """Non-empty text, a whole number, or null."""
  fits = value is None or (
    isinstance(value, (str, int)) and not isinstance(value, bool)
  )
  _require(fits and value != '', 'a name, a whole number or null')
  return value


def names_or_mappings(value):
  """Name, mapping, or a list of these."""
  items = value if isinstance(value, (list, tuple)) else [value]
  fits = items and all(x and isinstance(x, (str, dict)) for x in items)
  _require(fits, 'a name, a mapping, or a list of these')
  return value


def listing(check_item, length=None, may_be_empty=False):
  """List whose items all pass a check."""

  def check(value):
    fits = isinstance(value, (list, tuple)) and (may_be_empty or len(value) > 0)
    count = 'any number of' if may_be_empty else length or 'one or more'
    _require(fits and length in (None, len(value)), f'a list of {count} values')
    return [check_item(x) for x in value]

  return check


def optional(check_value):
  """Whatever passes another check, or null."""
  return lambda value: None if value is None else check_value(value)


def mapping(value):
  """Mapping from names to values."""
  _require(isinstance(value, dict), 'a mapping')
  return dict(value)


def _is_number(value):
  return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _require(condition, what):
  if not condition:
    raise ValueError(what)
