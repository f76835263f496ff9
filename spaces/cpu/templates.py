"""The templates of CPU kernels."""

from tilewright.spaces.cpu.blocked.template import BlockedTemplate
from tilewright.spaces.cpu.chained.template import ChainedTemplate
from tilewright.spaces.cpu.kept.template import KeptTemplate
from tilewright.spaces.cpu.loops.template import CpuLoops
from tilewright.spaces.cpu.maps.template import MapTemplate
from tilewright.spaces.cpu.rows.template import RowsTemplate
from tilewright.spaces.cpu.staged.template import StagedLoops, StagedTemplate
from tilewright.spaces.cpu.thin.template import ThinDots, ThinPacked, ThinStream
from tilewright.spaces.cpu.windows.template import WindowsTemplate
from tilewright.spaces.cpu.winograd.template import WinogradTemplate
from tilewright.spaces.template import Template

TEMPLATES: tuple[type[Template], ...] = (
    BlockedTemplate,
    ThinStream,
    ThinDots,
    ThinPacked,
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
