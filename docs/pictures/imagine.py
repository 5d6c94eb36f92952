"""Open-loop predictions of a shipped PlaNet agent, as images.

Shipped agents come without the image decoder, which plans do not need. `fit`
trains one on the posterior states of played episodes, with encoder and dynamics
as they are.
"""

import contextlib
from typing import Any

import numpy as np

import planet
from agents.tools.tf1 import tf
from planet.scripts import resume
from planet.tools import unroll
from planet.training.define_networks import define_networks

UPDATES, BATCH = 8000, 40


def collect(folder: str, count: int, seed: int = 11) -> list[dict[str, Any]]:
  """Play episodes: planned, planned with noise, and two random ones, in turn.

  Returns:
    List of dicts of `image` uint8 [time, height, width, 3], `action` float32
    [time, size] and `reward` [time], each action the one that led to its image.
  """
  random = np.random.RandomState(seed)
  episodes = []
  with (
    planet.load(folder, seed=seed) as agent,
    contextlib.closing(agent._make_env()) as env,
  ):
    for number in range(count):
      agent.reset()
      images, done, hold = [env.reset()], False, 0
      actions = [np.zeros(env.action_space.shape, np.float32)]
      rewards = [0.0]
      while not done:
        if number % 4 < 2:
          action, _ = agent.predict(images[-1], deterministic=number % 4 == 0)
        elif hold <= 0:
          action = random.uniform(-1, 1, actions[0].shape).astype(np.float32)
          hold = random.randint(1, 8)
        hold -= 1
        image, reward, done, _ = env.step(action)
        images.append(image)
        actions.append(action)
        rewards.append(float(reward))
      episodes.append(
        {
          'image': np.stack(images),
          'action': np.stack(actions),
          'reward': np.array(rewards),
        }
      )
  return episodes


class Model:
  """Networks of a shipped agent.

  Args:
    folder: Folder of the agent.

  Attributes:
    networks: See `define_networks`.
  """

  def __init__(self, folder: str) -> None:
    path, self._config, shapes = resume.restore(folder)
    with tf.Graph().as_default() as self.graph:
      self._image = tf.placeholder(tf.uint8, [1, None, *shapes['image']])
      self._action = tf.placeholder(tf.float32, [1, None, *shapes['action']])
      length = tf.shape(self._image)[1]
      data = {k: tf.zeros([1, length, *x]) for k, x in shapes.items()}
      data['image'] = self._config.preprocess_fn(self._image)
      data['action'] = self._action
      with tf.variable_scope('graph', use_resource=True):
        self.networks = define_networks(data, self._config)
        self._features = self._to_features(self.networks.posterior)
      variables = tf.trainable_variables()
      self._decoder = [x for x in variables if '/head_image/' in x.op.name]
      self.sess = tf.Session()
      stored = dict(tf.train.list_variables(path))
      found = [x for x in variables if x.op.name in stored]
      tf.train.Saver(found).restore(self.sess, path)

  def fit(self, episodes: list[dict[str, Any]]) -> None:
    """Train the decoder on the posterior states of episodes."""
    with self.graph.as_default():
      targets = [self._features, self.networks.data['image']]
      found = [self.sess.run(targets, self._feed(x)) for x in episodes]
      features, images = (np.concatenate(x, 1)[0][:, None] for x in zip(*found))
      feature = tf.placeholder(tf.float32, [None, *features.shape[1:]])
      image = tf.placeholder(tf.float32, [None, *images.shape[1:]])
      rate = tf.placeholder(tf.float32, [])
      prediction = self.networks.heads.image(feature)
      loss = -tf.reduce_mean(prediction.log_prob(image))
      error = tf.reduce_mean(tf.square(prediction.mean() - image))
      optimizer = tf.train.AdamOptimizer(rate, epsilon=1e-4)
      update = optimizer.minimize(loss, var_list=self._decoder)
      missing = [*self._decoder, *optimizer.variables()]
      self.sess.run(tf.variables_initializer(missing))
      random = np.random.RandomState(0)
      for step in range(UPDATES):
        index = random.randint(0, len(features), BATCH)
        feed = {feature: features[index], image: images[index]}
        feed[rate] = 1e-3 if step < 0.7 * UPDATES else 3e-4
        _, value = self.sess.run([update, error], feed)
        if step % 1000 == 0:
          print(f'Decoder, update {step}: error {value:.5f}.', flush=True)

  def imagine(
    self, episode: dict[str, Any], context: int
  ) -> tuple[np.ndarray, np.ndarray]:
    """Predict from the first images of an episode and all of its actions.

    Args:
      episode: See `collect`.
      context: Number of images to see.

    Returns:
      Tuple of images uint8 [time, height, width, 3] and rewards [time].
    """
    with self.graph.as_default():
      state = unroll.open_loop(
        self.networks.cell, self.networks.embedded, self._action, context
      )
      features, heads = self._to_features(state), self.networks.heads
      mean = heads.image(features).mean()
      image = tf.clip_by_value(self._config.postprocess_fn(mean), 0, 1)
      targets = [image[0], heads.reward(features).mean()[0]]
      image, reward = self.sess.run(targets, self._feed(episode))
    return (255 * image).astype(np.uint8), reward

  def _feed(self, episode):
    return {
      self._image: episode['image'][None],
      self._action: episode['action'][None],
    }

  def _to_features(self, state):
    return self.networks.cell.features_from_state(state)
