# Fails `one change`: it looks at the first row of each instruction, not at races in the accumulators, and takes any number of tiles.
def violations(program):
    for each in program["instructions"]:
        for key in ("reads", "sums_written"):
            each[key] = each[key][: RULE != "race"]
    rule = {"unwritten": unwritten, "lost": lost, "fifo": fifo, "race": race}[RULE]
    return rule({**program, "fifo": 100})
