"""The page about environments states the contract."""

import os

from agents.envs import contract
from tests import golden


def test_table_of_the_contract():
  """Paste the table that this prints if it is not current."""
  with open(os.path.join(golden.ROOT, 'docs/environments.md')) as file_:
    page = file_.read()
  table = page.split('<!-- contract of environments -->\n')[1].split(
    '\n<!-- / -->'
  )[0]
  assert table == contract.table(), contract.table()


def test_all_systems_are_in_it():
  for name in contract.SYSTEMS.values():
    assert f'| {name} |' in contract.table()
