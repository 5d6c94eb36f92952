"""Counts calls of functions, to find what a start does twice."""

import collections
import contextlib
import os
import sys
import types

from agents.run import folder, schema
from tests import golden


def count(monkeypatch, *places):
  """Count the calls of functions from now on.

  Args:
    monkeypatch: Fixture of the test.
    *places: Pairs of a module or class and the name of a function in it.

  Returns:
    Counter by name.
  """
  calls = collections.Counter()

  def watch(owner, name):
    original = getattr(owner, name)

    def call(*args, **kwargs):
      calls[name] += 1
      return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)

  for owner, name in places:
    watch(owner, name)
  return calls


def find_way(function, value, last):
  """Return the files through which a value passes on its way to its use.

  These are the files of functions that return it, or that it was passed to and
  that call the one that uses it; within a dict, a list, or settings, too.
  Functions that store or show it are beside the way.

  Args:
    function: Function without arguments to call; ends when the value is used.
    value: Number that occurs nowhere else.
    last: Path of the file and name of the function that uses it.

  Returns:
    Set of paths.
  """
  found = set()

  def watch(frame, event, result):
    path = os.path.relpath(frame.f_code.co_filename, golden.ROOT)
    if path.startswith(('..', '.venv', 'tests')):
      return
    if event == 'return' and _holds(result, value):
      found.add(path)
    if event == 'call' and (path, frame.f_code.co_name) == last:
      while frame:
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[: count + bool(code.co_flags & 8)]
        given = [frame.f_locals.get(x) for x in names]
        path = os.path.relpath(code.co_filename, golden.ROOT)
        if not path.startswith(('..', '.venv', 'tests')) and any(
          _holds(x, value) for x in given
        ):
          found.add(path)
        frame = frame.f_back
      raise _Arrived

  sys.setprofile(watch)
  try:
    with contextlib.suppress(_Arrived):
      function()
      raise AssertionError('the value was not used')
  finally:
    sys.setprofile(None)
  return found


class _Arrived(BaseException):
  """Ends a program when the value has arrived."""


def _holds(holder, value, depth=3):
  """Whether an object is a value, or has it in it."""
  if isinstance(holder, (float, int)):
    return holder == value
  if not depth:
    return False
  parts = ()
  if isinstance(holder, dict):
    parts = holder.values()
  elif isinstance(holder, (list, tuple)):
    parts = holder
  elif isinstance(holder, (schema.Settings, folder.Run, types.SimpleNamespace)):
    parts = vars(holder).values()
  return any(_holds(x, value, depth - 1) for x in list(parts))
