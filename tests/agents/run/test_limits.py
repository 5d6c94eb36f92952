"""Memory and cores of the machine, and of containers."""

import math
import os

from agents.run import limits


def test_allowed_memory(tmp_path):
  """Limits of containers count if they are below the machine's memory."""
  machine = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
  assert 2**27 < limits.allowed_memory() <= machine
  limit = tmp_path / 'memory.max'
  for text, expected in (
    (f'{2**26}\n', 2**26),
    ('max\n', machine),
    (f'{2**63 - 4096}\n', machine),
  ):
    limit.write_text(text)
    files = [str(tmp_path / 'missing'), str(limit)]
    assert limits.allowed_memory(files) == expected


def test_allowed_cores(tmp_path):
  """Quotas of containers count, in either form."""
  assert 0 < limits.allowed_cores() <= len(limits.list_cores())
  limit, period = tmp_path / 'cpu.max', tmp_path / 'period'
  period.write_text('100000\n')
  for text, expected in (
    ('50000 100000\n', 0.5),
    ('max 100000\n', math.inf),
  ):
    limit.write_text(text)
    assert limits.cpu_quota([[str(limit)]]) == expected
  for text, expected in (('50000\n', 0.5), ('-1\n', math.inf)):
    limit.write_text(text)
    files = [[str(tmp_path / 'missing')], [str(limit), str(period)]]
    assert limits.cpu_quota(files) == expected
