"""Packages whose public names are imported on first use.

Environment processes import parts of these packages and must not load
TensorFlow, so `__init__` must not import modules that need it.
"""

import ast
import importlib
import os
import sys
import types
from typing import Any


def export(package: str) -> None:
  """Make names available from a package without importing them yet.

  The names are those that the `__init__.pyi` of the package imports under their
  own name with `as`; type checkers read the same file. A function that shares
  the name of its file keeps it, even after an import of the file.

  Args:
    package: Name of the package, `__name__` of the calling `__init__`.
  """
  module = sys.modules[package]
  path = os.path.join(module.__path__[0], '__init__.pyi')
  with open(path, encoding='utf-8') as file_:
    imports: Any = ast.parse(file_.read()).body
  names = {x.asname: (i.module, x.name) for i in imports for x in i.names}

  def load(name: str) -> Any:
    if name not in names:
      raise AttributeError(f'Module {package!r} has no attribute {name!r}.')
    place, attribute = names[name]
    # `from . import name` is about a module.
    value = importlib.import_module(place or f'{package}.{attribute}')
    value = getattr(value, attribute) if place else value
    setattr(module, name, value)
    return value

  class Package(types.ModuleType):
    """Package; an import binds the function of a file, not the file."""

    def __setattr__(self, name: str, value: Any) -> None:
      place, attribute = names.get(name, (None, name))
      if isinstance(value, types.ModuleType) and place == f'{package}.{name}':
        value = getattr(value, attribute)
      super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
      # Functions of scripts, which are pickled by value, may use the package.
      return importlib.import_module, (package,)

  module.__class__ = Package
  module.__dict__.update(
    __all__=sorted(names),
    __dir__=lambda: sorted({*vars(module), *names}),
    __getattr__=load,
  )
