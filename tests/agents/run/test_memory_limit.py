"""Memory of the machine, and of containers."""

import os

from agents.run import memory_limit


def test_allowed_memory(tmp_path):
  """Limits of containers count if they are below the machine's memory."""
  machine = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
  assert 2**27 < memory_limit.allowed_memory() <= machine
  limit = tmp_path / 'memory.max'
  for text, expected in (
    (f'{2**26}\n', 2**26),
    ('max\n', machine),
    (f'{2**63 - 4096}\n', machine),
  ):
    limit.write_text(text)
    files = [str(tmp_path / 'missing'), str(limit)]
    assert memory_limit.allowed_memory(files) == expected
