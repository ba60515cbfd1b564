"""Fails `hidden: convolutions`: walks the rows of an image as if there were no stride."""

import re


def lower_conv(layer):
    for line in lower_fc(layer):
        yield re.sub("ub_stride=[0-9]+", "ub_stride=1", line) if line.startswith("convolve") else line
