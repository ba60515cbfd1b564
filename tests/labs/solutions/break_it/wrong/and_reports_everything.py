# Fails `one change`: it reports every instruction, so that each bug that it catches is a false alarm too.
def violations(program):
    return list(range(len(program["instructions"])))
