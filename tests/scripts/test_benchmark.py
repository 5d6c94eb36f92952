"""The benchmark program: pairs of processes, and what it prints."""

import json

import pytest

from agents.run import errors
from scripts import benchmark
from tests import golden


@pytest.mark.needs('carla')
@pytest.mark.parametrize(
  'more',
  [pytest.param([], marks=pytest.mark.slow), ['--against', golden.ROOT]],
)
def test_ratio_to_the_baseline(more, capfd):
  argv = ['carla-step', '--units', '20', '--repeats', '1', '--json', *more]
  benchmark.main(argv)
  lines = capfd.readouterr().out.splitlines()
  result = json.loads(lines[-1])
  cost = result['baseline_cpu_s'] / result['cpu_s']
  assert result['ratio'] == pytest.approx(cost)


def test_folder_that_is_not_there():
  with pytest.raises(errors.UsageError, match='--against is nowhere'):
    benchmark.main(['ppo', '--against', 'nowhere'])
