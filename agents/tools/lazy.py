"""Packages whose public names are imported when they are first used.

Environment processes import parts of these packages and have to stay free of
TensorFlow, so their `__init__` may not import a module that needs it.
"""

import importlib
import sys
from typing import Any


def export(package: str, names: dict[str, str]) -> None:
  """Make names available from a package without importing them yet.

  The package gets a `__getattr__` (PEP 562). A function that shares the name
  of its file has to be imported from the package, as in `from agents.tools
  import simulate`: importing the file itself binds the module to this name.

  Args:
    package: Name of the package, `__name__` of the calling `__init__`.
    names: Dict from public name to `module` or `module:attribute`.
  """
  module = sys.modules[package]

  def load(name: str) -> Any:
    if name not in names:
      raise AttributeError(f'Module {package!r} has no attribute {name!r}.')
    place, _, attribute = names[name].partition(':')
    value = importlib.import_module(place)
    value = getattr(value, attribute) if attribute else value
    setattr(module, name, value)
    return value

  module.__dict__.update(
    __all__=sorted(names),
    __dir__=lambda: sorted({*vars(module), *names}),
    __getattr__=load,
  )
