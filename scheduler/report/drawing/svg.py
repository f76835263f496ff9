"""Draw figures as SVG: text that can be selected, colours that the colour-blind tell apart.

Each series also has a mark of its own. All text is escaped: it may come from a stranger.
"""

from __future__ import annotations

from html import escape

from tilewright.scheduler.report.drawing.chart import ChartDrawing
from tilewright.scheduler.report.drawing.elements import COLOURS, WIDTH, xml_text
from tilewright.scheduler.report.drawing.levels import LevelsDrawing
from tilewright.scheduler.report.drawing.parallel import ParallelDrawing
from tilewright.scheduler.report.figure import Figure, Picture
from tilewright.scheduler.report.levels import Levels
from tilewright.scheduler.report.parallel import Parallel

FONTS = "system-ui,Helvetica,Arial,Liberation Sans,Noto Sans,DejaVu Sans,sans-serif"
STYLE = f"""\
svg.figure{{font:11px {FONTS};color:#1b1b1b;background:#fff}}
svg.figure text{{fill:currentColor}}
"""


def standalone(figure: Picture) -> str:
    """Return a picture with a style of its own."""
    rules = STYLE + "".join(f".c{i}{{color:{c}}}" for i, c in enumerate(COLOURS)) + FIGURE_STYLE
    return drawn(figure).replace(">", f"><style>{rules}</style>", 1)


FIGURE_STYLE = """\
.figure .points{fill:none;stroke:currentColor;stroke-width:5;stroke-linecap:round;opacity:.75}
.figure .thin{stroke-width:1.4}.figure .square{stroke-linecap:square}
.figure .steps,.figure .line,.figure .spans{fill:none;stroke:currentColor;stroke-width:1.6}
.figure .rule{fill:none;stroke:currentColor;stroke-width:1.4;stroke-dasharray:6 3}
.figure .bars{fill:currentColor}
.figure .trials{fill:none;stroke:currentColor;opacity:.3}
.figure .g0{stroke-width:1.8;opacity:.9}.figure .g3{stroke-dasharray:2 3}.figure .key{opacity:1}
.figure .hit{fill:none;pointer-events:all}
.figure .part{opacity:.45}
.figure .grid{stroke:currentColor;stroke-opacity:.15;fill:none}
.figure .frame{stroke:currentColor;stroke-opacity:.5;fill:none}
"""


def drawn(figure: Picture, identity: str = "") -> str:
    """Return a picture that takes its style from the page; ``identity`` tells it from others
    there."""
    drawing = _drawing(figure)
    name = f"{identity or figure.name}-title"
    parts = [
        f'<svg class="figure" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {WIDTH} {drawing.height:g}" aria-labelledby="{escape(name)}" '
        f'data-points="{figure.count}">',
        f'<title id="{escape(name)}">{xml_text(f"{figure.title}: {figure.caption}")}</title>',
        *drawing.lines(),
        "</svg>",
    ]
    return "".join(parts)


def _drawing(figure: Picture) -> ChartDrawing | LevelsDrawing | ParallelDrawing:
    if isinstance(figure, Parallel):
        return ParallelDrawing(figure)
    if isinstance(figure, Levels):
        return LevelsDrawing(figure)
    assert isinstance(figure, Figure)
    return ChartDrawing(figure)
