"""The templates of CPU kernels."""

from spaces.cpu.blocked.template import BlockedTemplate
from spaces.cpu.chained.template import ChainedTemplate
from spaces.cpu.kept.template import KeptTemplate
from spaces.cpu.loops.template import CpuLoops
from spaces.cpu.maps.template import MapTemplate
from spaces.cpu.rows.template import RowsTemplate
from spaces.cpu.staged.template import StagedLoops, StagedTemplate
from spaces.cpu.thin.template import ThinDots, ThinStream
from spaces.cpu.windows.template import WindowsTemplate
from spaces.cpu.winograd.template import WinogradTemplate
from spaces.template import Template

TEMPLATES: tuple[type[Template], ...] = (
    BlockedTemplate,
    ThinStream,
    ThinDots,
    WindowsTemplate,
    WinogradTemplate,
    RowsTemplate,
    KeptTemplate,
    MapTemplate,
    ChainedTemplate,
    StagedTemplate,
    StagedLoops,
    CpuLoops,
)
