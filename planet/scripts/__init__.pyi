from . import configs as configs
from . import tasks as tasks
from . import train as train
