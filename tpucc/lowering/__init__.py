"""From layers to tiles: instructions on virtual buffers."""
