"""Counts calls of functions, to find what a start does twice."""

import collections


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
