"""How the shipped map `grid` was made: a street grid from OpenStreetMap text.

Run it to make the file once more:

  python -m planet.envs.carla.street_grid planet/envs/carla/maps/grid.xodr.gz
"""

import gzip
import re
import sys

from planet.envs.carla import roads

# Metres per degree at the origin, where the grid lies.
_METRES = 111319.49


def osm_text(
  columns: int = 4, rows: int = 3, width: float = 80.0, height: float = 60.0
) -> str:
  """Write the OpenStreetMap text of a grid of two-way streets.

  Args:
    columns: Number of junctions in a row.
    rows: Number of rows of junctions.
    width: Metres between the junctions of a row.
    height: Metres between the rows.

  Returns:
    Text of the XML.
  """
  nodes, ways = [], []

  def number(column, row):
    return 1 + row * columns + column

  for row in range(rows):
    for column in range(columns):
      lat, lon = row * height / _METRES, column * width / _METRES
      nodes.append(
        f'<node id="{number(column, row)}" lat="{lat:.8f}" lon="{lon:.8f}"/>'
      )
      if column + 1 < columns:
        ways.append((number(column, row), number(column + 1, row)))
      if row + 1 < rows:
        ways.append((number(column, row), number(column, row + 1)))
  tags = '<tag k="highway" v="residential"/><tag k="lanes" v="2"/>'
  lines = [
    f'<way id="{100 + index}"><nd ref="{a}"/><nd ref="{b}"/>{tags}</way>'
    for index, (a, b) in enumerate(ways)
  ]
  body = '\n'.join(nodes + lines)
  return f'<?xml version="1.0"?>\n<osm version="0.6">\n{body}\n</osm>\n'


def make() -> str:
  """Make the OpenDRIVE text of the street grid."""
  carla = roads.import_carla()
  settings = carla.Osm2OdrSettings()
  settings.generate_traffic_lights = False
  text = carla.Osm2Odr.convert(osm_text(), settings)
  assert '<road' in text, text[:200]
  # The date would differ each time, and line breaks cause warnings.
  text = re.sub(r'<!--.*?-->', '', text, count=1, flags=re.DOTALL)
  text = re.sub(r' date="[^"]*"', '', text, count=1)
  return re.sub(
    r'<geoReference>.*?</geoReference>',
    '<geoReference><![CDATA[+proj=tmerc +lat_0=0 +lon_0=0]]></geoReference>',
    text,
    flags=re.DOTALL,
  )


def main(filename: str) -> None:
  """Write the map, compressed."""
  with open(filename, 'wb') as file_:
    file_.write(gzip.compress(make().encode(), mtime=0))


if __name__ == '__main__':
  main(sys.argv[1])
