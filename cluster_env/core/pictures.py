"""What pictures of a state have in common: colors of jobs, and a matplotlib figure as pixels."""

from colorsys import hsv_to_rgb
from typing import Any

import numpy as np
from numpy.typing import NDArray

Color = tuple[int, int, int]
Pixels = NDArray[np.uint8]  # (height, width, 3)


def job_color(job: int) -> Color:
    """Neighbors in the order of arrival get hues far apart (steps of the golden angle)."""
    saturation = (0.75, 0.5, 0.9)[job % 3]
    value = (0.85, 0.9, 0.65)[job % 3]
    red, green, blue = hsv_to_rgb(0.58 + 0.381966 * job, saturation, value)
    return int(255 * red), int(255 * green), int(255 * blue)


def pixels_of(figure: Any) -> Pixels:
    """A matplotlib figure as RGB."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
