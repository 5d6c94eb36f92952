"""Functions with some of their arguments already given."""

import functools


class bind:  # pylint: disable=invalid-name
  """Picklable partial call.

  Arguments given at the time of the call follow those given here; keyword
  arguments given at the time of the call win.

  Args:
    fn: Function to call.
    *args: First positional arguments.
    **kwargs: Keyword arguments.
  """

  def __init__(self, fn, *args, **kwargs):
    self._fn = fn
    self._args = args
    self._kwargs = kwargs
    name = getattr(fn, '__name__', None) or type(fn).__name__
    functools.update_wrapper(self, fn, updated=())
    self.__name__ = name

  def __call__(self, *args, **kwargs):
    return self._fn(*self._args, *args, **{**self._kwargs, **kwargs})

  def __repr__(self):
    args = [repr(x) for x in self._args]
    args += [f'{k}={v!r}' for k, v in self._kwargs.items()]
    return f'bind({", ".join([self.__name__] + args)})'
