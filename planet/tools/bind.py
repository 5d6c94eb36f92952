"""Bind arguments to functions."""

import functools
from typing import Any


class bind(functools.partial):
  """Picklable `functools.partial` with a name.

  Calls append positional arguments and override keyword arguments, as does
  binding a bound function again. Unpickling returns a plain `partial` without
  the name.

  Args:
    fn: Function to call.
    *args: First positional arguments.
    **kwargs: Keyword arguments.
  """

  def __init__(self, *unused_args: Any, **unused_kwargs: Any) -> None:
    super().__init__()
    name = getattr(self.func, '__name__', None) or type(self.func).__name__
    self.__name__ = name

  def __reduce__(self) -> str | tuple[Any, ...]:
    # Environment processes unpickle this, and must not import this package,
    # which imports TensorFlow.
    plain = functools.partial(self.func, *self.args, **self.keywords)
    return plain.__reduce__()
