"""Names of objects, to store them."""

import functools

import pytest

from agents.run import errors, references


class Named:
  def method(self):
    pass


def test_names_find_objects_again():
  for value in (Named, Named.method, test_names_find_objects_again):
    name = references.name_of(value)
    assert references.resolve(name, references.EVERYTHING) is value


@pytest.mark.parametrize(
  'value, name',
  [
    (lambda: None, f'<{__name__}:<lambda>>'),
    (functools.partial(print), '<functools:partial>'),
    (Named(), f'<{__name__}:Named>'),
  ],
)
def test_what_no_name_finds(value, name):
  assert references.name_of(value) == name
  with pytest.raises(errors.UsageError, match='only the name is stored'):
    references.resolve(name, references.EVERYTHING)
