"""Find what users add to modules, as they do with the original.

They set functions as attributes of `planet.scripts.tasks`, `configs` and
`objectives`, or write them into these files. Each of the files ends with
`_OURS`, a copy of its globals, so that other values are known to be from users.
"""

import importlib
import importlib.util
import inspect
import re
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from agents.run import errors


def find(
  place: str,
  name: str,
  takes: Sequence[str] = ('config', 'params'),
) -> Callable[..., Any] | None:
  """Return the function of this name that users added to a module, or None.

  What is set as an attribute may be any callable; a function that is written
  into the file has arguments of these names.

  Args:
    place: Name of the module, imported only if it may have one.
    name: Name of the function.
    takes: Names of its arguments.

  Raises:
    UsageError: If users set an attribute that does not take as many arguments.
  """
  if not may_have(place, name):
    return None
  module = vars(importlib.import_module(place))
  found: Any = module.get(name)
  if found is module['_OURS'].get(name):
    if not isinstance(found, types.FunctionType):
      return None
    names = list(inspect.signature(found).parameters)
    return found if names[: len(takes)] == [*takes] else None
  try:
    inspect.signature(found).bind(*takes)
  except (TypeError, ValueError):
    raise errors.UsageError(
      f'Attribute {name} of {place} is {found!r}; set a function that takes '
      f'{len(takes)} arguments: {", ".join(takes)}.'
    ) from None
  return found


def may_have(place: str, name: Any) -> bool:
  """Return whether users may have added something to a module.

  Reads the file of a module that is not imported yet, because importing it
  imports TensorFlow, and a wrong name should be reported before that.

  Args:
    place: Name of the module.
    name: Name of what they may have set, or written into the file.
  """
  spec = importlib.util.find_spec(place)
  if place in sys.modules or not (spec and spec.origin):
    return True
  begin = r'^|\b(def|class|as|import)\s+|[\'"]'
  with open(spec.origin) as file_:
    text = file_.read()
  return bool(re.search(rf'({begin}){re.escape(str(name))}\b', text, re.M))
