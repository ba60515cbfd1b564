# Fails `one change`: instructions are counted from 1.
def violations(program):
    rule = {"unwritten": unwritten, "lost": lost, "fifo": fifo, "race": race}[RULE]
    return [min(number + 1, len(program["instructions"]) - 1) for number in rule(program)]
