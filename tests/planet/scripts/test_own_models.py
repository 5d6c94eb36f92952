"""Models with fewer arguments than those of this project."""

from planet import models
from planet.scripts import configs


class Cell(models.RSSM):
  """Constructor of the original's base class, without `activation`."""

  def __init__(
    self, state_size, belief_size, embed_size, mean_only=False, min_stddev=0.1
  ):
    super().__init__(
      state_size,
      belief_size,
      embed_size,
      mean_only=mean_only,
      min_stddev=min_stddev,
    )


def test_model_takes_what_it_accepts():
  config = configs.make('debug', {'tasks': ['dummy'], 'model': Cell})
  assert config.cell().state_size['sample'] == config.params.state_size
