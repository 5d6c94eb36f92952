"""Files of `tests/data`, and values of TensorFlow."""

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests import golden

DATA = golden.FOLDER

Results = Iterator[tuple[str, dict[str, Any]]]


def read(folder: str, name: str) -> dict[str, Any]:
  """Return the arrays of a file of `tests/data`."""
  with np.load(os.path.join(DATA, folder, f'{name}.npz')) as data:
    return {key: data[key] for key in data}


def read_json(folder: str, name: str) -> dict[str, Any]:
  """Return the content of a JSON file of `tests/data`."""
  with open(os.path.join(DATA, folder, f'{name}.json')) as file_:
    return json.load(file_)


def below(data, prefix):
  return {
    k.removeprefix(prefix): v for k, v in data.items() if k.startswith(prefix)
  }


def session(tf):
  sess = tf.Session()
  sess.run(tf.global_variables_initializer())
  return sess


def evaluate(tf, tensors):
  with session(tf) as sess:
    return sess.run(tensors)
