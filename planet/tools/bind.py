"""Functions with some of their arguments already given."""

import functools


class bind(functools.partial):
  """Picklable partial call with a name.

  Arguments given at the time of the call follow those given here; keyword
  arguments given at the time of the call win. Binding a bound function again
  adds to its arguments.

  Args:
    fn: Function to call.
    *args: First positional arguments.
    **kwargs: Keyword arguments.
  """

  def __init__(self, *unused_args, **unused_kwargs):
    super().__init__()
    name = getattr(self.func, '__name__', None) or type(self.func).__name__
    self.__name__ = name
