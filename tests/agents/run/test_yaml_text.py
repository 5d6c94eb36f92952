"""Plain data from YAML text."""

import pytest

from agents.run import files, yaml_text


def test_numbers_in_yaml():
  """YAML 1.2 has numbers where PyYAML sees text, and text for `yes`."""
  values = yaml_text.parse('{a: 5e7, b: 1e-3, c: yes, d: 3, e: true}')
  assert values == dict(a=5e7, b=1e-3, c='yes', d=3, e=True)
  assert isinstance(values['a'], float) and isinstance(values['b'], float)


def test_dates_in_yaml(tmp_path):
  """Texts, which all formats store, so that continued runs get the same."""
  values = yaml_text.parse('{a: 2020-01-01, b: 2020-01-01 10:00:00}')
  assert values == {'a': '2020-01-01', 'b': '2020-01-01 10:00:00'}
  files.write_yaml(str(tmp_path / 'a.yaml'), values)
  assert files.read_yaml(str(tmp_path / 'a.yaml')) == values


def test_invalid_yaml_is_a_value_error():
  with pytest.raises(ValueError, match='line 1'):
    yaml_text.parse('{a: [1}')
