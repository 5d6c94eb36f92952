"""Functions over nested tuples, lists, dictionaries and named tuples.

The container type of the first structure decides the type of the result. A
dictionary is flattened in the order of its sorted keys.
"""

import builtins
from collections.abc import Callable
from typing import Any

from agents.run import references

_EMPTY = object()


def map_(
  function: Callable[..., Any], *structures: Any, flatten: bool = False
) -> Any:
  """Apply a function to the leaves of one or several equal structures.

  Args:
    function: Takes as many arguments as there are structures.
    *structures: Nested containers with the same layout.
    flatten: Return a flat tuple of the results.

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
    *structures: Nested containers with the same layout. A single one is
      returned as it is.
    flatten: Return a flat tuple of all leaves instead.

  Raises:
    ValueError: If lengths or keys of the structures differ.
  """
  if len(structures) == 1:
    result = structures[0]
  else:
    result = map_(lambda *leaves: leaves, *structures)
  return flatten_(result) if flatten else result


@references.nameable
def flatten_(structure: Any) -> tuple[Any, ...]:
  """Tuple of the leaves, depth first, dictionaries by sorted key."""
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
  """Keep the leaves for which a predicate holds.

  Containers that become empty are dropped, except for the outermost one.
  Missing fields of named tuples become None.

  Args:
    predicate: Takes as many arguments as there are structures.
    *structures: Nested containers with the same layout. Leaves of several
      structures are combined into tuples.
    flatten: Return a flat tuple of the results.

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
  first = structures[0]
  if _all_sequences(structures):
    _check_lengths(structures)
    return _rebuild(
      first, [_map(function, x) for x in builtins.zip(*structures)]
    )
  if _all_dicts(structures):
    _check_keys(structures)
    return _rebuild(
      first,
      {key: _map(function, [x[key] for x in structures]) for key in first},
    )
  return function(*structures)


def _filter(predicate, structures):
  first = structures[0]
  if _all_sequences(structures):
    _check_lengths(structures)
    values = [_filter(predicate, x) for x in builtins.zip(*structures)]
    if all(x is _EMPTY for x in values):
      return _EMPTY
    if _is_named(first):
      return _rebuild(first, [None if x is _EMPTY else x for x in values])
    return _rebuild(first, [x for x in values if x is not _EMPTY])
  if _all_dicts(structures):
    _check_keys(structures)
    found = {
      key: _filter(predicate, [x[key] for x in structures]) for key in first
    }
    kept = {k: v for k, v in found.items() if v is not _EMPTY}
    return _rebuild(first, kept) if kept else _EMPTY
  if not predicate(*structures):
    return _EMPTY
  return structures[0] if len(structures) == 1 else tuple(structures)


def _rebuild(like, values):
  return type(like)(*values) if _is_named(like) else type(like)(values)


def _is_named(structure):
  return isinstance(structure, tuple) and hasattr(structure, '_fields')


def _all_sequences(structures):
  return all(isinstance(x, (tuple, list)) for x in structures)


def _all_dicts(structures):
  return all(isinstance(x, dict) for x in structures)


def _check_lengths(structures):
  if len({len(x) for x in structures}) > 1:
    raise ValueError('Cannot merge tuples or lists of different length.')


def _check_keys(structures):
  if len({frozenset(x) for x in structures}) > 1:
    raise ValueError('Cannot merge dicts with different keys.')


# These public names hide builtins, also from the functions above.
map = map_
zip = zip_
flatten = flatten_
filter = filter_
