"""Data that flows in waves through a weight-stationary array, cycle by cycle: in the terminal, as an animated SVG, as a page.

Every number that is drawn is one that a register of `tpucc.systolic` holds in that cycle; see `docs/systolic.md`.
"""

from tpucc.see.waves.page import SCRIPTS, waves_page
from tpucc.see.waves.picture import MOST, waves_svg
from tpucc.systolic.work import COUNTS, SIDES, TILES, VALUES, Demo, Frame, random_work

__all__ = ["COUNTS", "MOST", "SCRIPTS", "SIDES", "TILES", "VALUES", "Frame", "Demo", "random_work", "waves_page", "waves_svg"]
