"""Functions with some of their arguments already given."""

import functools
from typing import Any


class bind(functools.partial):
  """Picklable partial call with a name.

  Arguments given at the time of the call follow those given here; keyword
  arguments given at the time of the call win. Binding a bound function again
  adds to its arguments.

  Pickles hold plain partial calls, which lose the name.

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
    # The other process may be one of an environment, which must not import
    # TensorFlow, as this package does.
    plain = functools.partial(self.func, *self.args, **self.keywords)
    return plain.__reduce__()
