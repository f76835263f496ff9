"""The templates of CPU kernels."""

from spaces.cpu.blocked.template import Contraction
from spaces.cpu.thin.template import ThinDots, ThinStream
from spaces.template import Template

TEMPLATES: tuple[type[Template], ...] = (Contraction, ThinStream, ThinDots)
