"""Fails `valid orders`: a sum begins with a multiply that adds to it."""


def order(tiles):
    code = list(tiles)
    found = list(range(len(code)))
    for n in range(len(code) - 1):
        both = [code[n], code[n + 1]]
        if all(i.engine.name == "MATRIX" for i in both) and "accumulate" in both[1].text and "accumulate" not in both[0].text:
            found[n], found[n + 1] = n + 1, n
    return found
