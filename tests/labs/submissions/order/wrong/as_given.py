"""Fails `weight tiles`: leaves the order as it is."""


def order(tiles):
    return range(len(tiles))
