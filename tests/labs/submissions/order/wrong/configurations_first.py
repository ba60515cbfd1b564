"""Fails `valid orders`: every activation finds the parameter block that was chosen last."""


def order(tiles):
    return sorted(range(len(tiles)), key=lambda n: not tiles[n].text.startswith("set_configuration"))
