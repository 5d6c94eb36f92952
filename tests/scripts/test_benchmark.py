"""The benchmark program: pairs of processes, and what it prints."""

import json

import pytest

from scripts import benchmark
from tests import golden


@pytest.mark.needs('carla')
@pytest.mark.parametrize('more', [[], ['--against', golden.ROOT]])
def test_ratio_to_the_baseline(more, capfd):
  argv = ['carla-step', '--units', '100', '--repeats', '1', '--json', *more]
  benchmark.main(argv)
  lines = capfd.readouterr().out.splitlines()
  result = json.loads(lines[-1])
  cost = result['baseline_cpu_s'] / result['cpu_s']
  assert result['ratio'] == pytest.approx(cost)
  # The same code is as fast as itself; the other way to render is slower.
  assert result['ratio'] < 1.7 if more else result['ratio'] > 1.7
