"""Tests of advice in errors."""

import types

import pytest

from agents.run import errors


@pytest.mark.parametrize(
  'extra, version, complete',
  [
    ('pybullet', (3, 11, 9), True),
    ('pybullet', (3, 12, 0), False),
    ('dmc', (3, 12, 1), True),
    ('dmc', (3, 13, 0), False),
    ('carla', (3, 12, 1), True),
    ('carla', (3, 13, 0), False),
    ('robotics', (3, 13, 0), True),
  ],
)
def test_how_to_install(monkeypatch, extra, version, complete):
  """Extras leave out what a Python cannot have."""
  python = types.SimpleNamespace(version_info=version)
  monkeypatch.setattr(errors, 'sys', python)
  command = f"pip install 'reference-agents[{extra}]'"
  text = errors.how_to_install(extra)
  assert (text == command) is complete and text.startswith(command)
  assert complete or 'docs/install.md lists' in text


@pytest.mark.parametrize(
  'error, reason',
  [
    (FileNotFoundError(2, 'No such file', 'a.csv'), 'No such file'),
    (OSError('not a gzipped file'), 'not a gzipped file'),
    (KeyError('steps'), "it has no 'steps'"),
    (ValueError('line 3'), 'line 3'),
  ],
)
def test_reason_of(error, reason):
  assert errors.reason_of(error) == reason
