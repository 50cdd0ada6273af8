"""Points of a file become a map: columns found, points loaded, a grid computed in a process of its own."""

from dialoom.apps.geo.axes import SURE as SURE
from dialoom.apps.geo.axes import AxisMatch as AxisMatch
from dialoom.apps.geo.axes import match_axes as match_axes
from dialoom.apps.geo.axes import warnings_of as warnings_of
from dialoom.apps.geo.grid import GridJob as GridJob
from dialoom.apps.geo.grid import GridOutcome as GridOutcome
from dialoom.apps.geo.grid import compute as compute
from dialoom.apps.geo.grid import suggested_cell as suggested_cell
from dialoom.apps.geo.layout import Hints as Hints
from dialoom.apps.geo.layout import PointFile as PointFile
from dialoom.apps.geo.layout import read_points as read_points
from dialoom.apps.geo.methods import Search as Search
from dialoom.apps.geo.names import SYNONYMS as SYNONYMS
from dialoom.apps.geo.picture import scatter as scatter
from dialoom.apps.geo.points import Chosen as Chosen
from dialoom.apps.geo.points import Loaded as Loaded
from dialoom.apps.geo.points import load as load
from dialoom.apps.geo.worker import run_job as run_job
