from . import configs as configs
from . import networks as networks
from . import train as train
from . import utility as utility
from . import visualize as visualize
