"""Functions over nested tuples, lists, dictionaries and named tuples.

The first structure determines the container types of the result. Dictionaries
are flattened in the order of their sorted keys.
"""

import builtins
from collections.abc import Callable
from typing import Any

_EMPTY = object()


def map_(
  function: Callable[..., Any], *structures: Any, flatten: bool = False
) -> Any:
  """Apply a function to the leaves of one or more equal structures.

  Args:
    function: Function with as many arguments as there are structures.
    *structures: Nested containers with the same layout.
    flatten: Whether to return a flat tuple of the results.

  Returns:
    Structure like the first one, or a tuple when flattened.

  Raises:
    ValueError: If lengths or keys of the structures differ.
  """
  if not structures:
    return ()
  result = _map(function, structures)
  return flatten_(result) if flatten else result


def zip_(*structures: Any, flatten: bool = False) -> Any:
  """Combine the leaves of equal structures into tuples.

  Args:
    *structures: Nested containers with the same layout. A single structure is
      returned unchanged.
    flatten: Whether to return a flat tuple of all leaves instead.

  Raises:
    ValueError: If lengths or keys of the structures differ.
  """
  if len(structures) == 1:
    result = structures[0]
  else:
    result = map_(lambda *leaves: leaves, *structures)
  return flatten_(result) if flatten else result


def flatten_(structure: Any) -> tuple[Any, ...]:
  """Return the leaves as a tuple, depth first, dictionaries by sorted key."""
  if isinstance(structure, (tuple, list)):
    children = structure
  elif isinstance(structure, dict):
    children = [structure[key] for key in sorted(structure)]
  else:
    return (structure,)
  return tuple(leaf for child in children for leaf in flatten_(child))


def filter_(
  predicate: Callable[..., Any], *structures: Any, flatten: bool = False
) -> Any:
  """Keep the leaves for which a predicate is true.

  Drops containers that become empty, except for the outermost one. Missing
  fields of named tuples become None.

  Args:
    predicate: Function with as many arguments as there are structures.
    *structures: Nested containers with the same layout. Leaves of several
      structures are combined into tuples.
    flatten: Whether to return a flat tuple of the results.

  Raises:
    ValueError: If lengths or keys of the structures differ.
  """
  result = _filter(predicate, structures)
  if result is _EMPTY:
    first = structures[0]
    plain = isinstance(first, (tuple, list, dict)) and not _is_named(first)
    result = type(first)() if plain else ()
  return flatten_(result) if flatten else result


def _map(function, structures):
  parts = _split(structures)
  if parts is None:
    return function(*structures)
  return _rebuild(structures[0], {k: _map(function, x) for k, x in parts})


def _filter(predicate, structures):
  parts = _split(structures)
  if parts is None:
    if not predicate(*structures):
      return _EMPTY
    return structures[0] if len(structures) == 1 else tuple(structures)
  found = {key: _filter(predicate, x) for key, x in parts}
  kept = {key: x for key, x in found.items() if x is not _EMPTY}
  if kept and _is_named(structures[0]):
    kept = {key: kept.get(key) for key in found}
  return _rebuild(structures[0], kept) if kept else _EMPTY


def _split(structures):
  """Pairs of a key and the children of equal containers; None for leaves."""
  if all(isinstance(x, (tuple, list)) for x in structures):
    if len({len(x) for x in structures}) > 1:
      raise ValueError('Cannot merge tuples or lists of different length.')
    return list(enumerate(builtins.zip(*structures)))
  if all(isinstance(x, dict) for x in structures):
    if len({frozenset(x) for x in structures}) > 1:
      raise ValueError('Cannot merge dicts with different keys.')
    return [(key, [x[key] for x in structures]) for key in structures[0]]
  return None


def _rebuild(like, parts):
  if isinstance(like, dict):
    return type(like)(parts)
  values = parts.values()
  return type(like)(*values) if _is_named(like) else type(like)(values)


def _is_named(structure):
  return isinstance(structure, tuple) and hasattr(structure, '_fields')


# These public names hide builtins, even from the functions above.
map = map_
zip = zip_
flatten = flatten_
filter = filter_
