# Fails `sound programs`: it reports every instruction.
def violations(program):
    return list(range(len(program["instructions"])))
