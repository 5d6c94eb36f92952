"""Packages whose public names are imported when they are first used.

Environment processes import parts of our packages and have to stay free of
TensorFlow, so no `__init__` may import a module that needs it.
"""

import importlib
import sys
import types


class _LazyPackage(types.ModuleType):
  """Module type that resolves the names of its `_EXPORTS` on first access."""

  def __getattr__(self, name):
    exports = self.__dict__.get('_EXPORTS', {})
    if name not in exports:
      raise AttributeError(
        f'Module {self.__name__!r} has no attribute {name!r}.'
      )
    place, _, attribute = exports[name].partition(':')
    module = importlib.import_module(place)
    value = getattr(module, attribute) if attribute else module
    self.__dict__[name] = value
    return value

  def __setattr__(self, name, value):
    # Importing a submodule binds it to its package. Where a public function
    # shares the name of its submodule, the function is what callers expect.
    place, _, attribute = self._EXPORTS.get(name, '').partition(':')
    if attribute and isinstance(value, types.ModuleType):
      if value.__name__ == place == f'{self.__name__}.{name}':
        value = getattr(value, attribute)
    super().__setattr__(name, value)

  def __dir__(self):
    return sorted(set(self.__dict__) | set(self._EXPORTS))


def export(package: str, names: dict[str, str]) -> None:
  """Make names available from a package without importing them yet.

  Args:
    package: Name of the package, `__name__` of the calling `__init__`.
    names: Dict from public name to `module` or `module:attribute`.
  """
  module = sys.modules[package]
  module.__dict__['_EXPORTS'] = dict(names)
  module.__dict__['__all__'] = sorted(names)
  module.__class__ = _LazyPackage
