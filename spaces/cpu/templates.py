"""The templates of CPU kernels."""

from spaces.cpu.contraction import Contraction
from spaces.cpu.thin import ThinDots, ThinStream
from spaces.template import Template

TEMPLATES: tuple[type[Template], ...] = (Contraction, ThinStream, ThinDots)
