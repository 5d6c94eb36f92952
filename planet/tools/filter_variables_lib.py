"""Filter variables; the module of PlaNet."""

from planet.tools.filter_variables import filter_variables as filter_variables
