"""Numbers as pictures: time, memory, tiles, the roofline, and what quantising costs; `textcharts` are those of the terminal."""
