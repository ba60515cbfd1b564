# Fails `one change`: it asks whether something is done anywhere in the program, not whether it is done before.
def violations(program):
    code = program["instructions"]
    if RULE == "unwritten":
        written = {row for each in code for row in each["writes"]}
        return [number for number, each in enumerate(code) if set(each["reads"]) - written]
    if RULE == "lost":
        activated = {row for each in code if not each["sums_written"] for row in each["sums_read"]}
        return [number for number, each in enumerate(code) if set(each["sums_written"]) - activated]
    if RULE == "fifo":
        tiles = sum(each["tile"] is not None for each in code) - sum(each["switch"] for each in code)
        return [] if tiles == 0 else [len(code) - 1]
    waits = {(engine, other) for each in code for engine, others in each["waits"] for other in others}
    pairs = [(number, each, one) for number, each in enumerate(code) for one in code[:number]]
    return [
        n
        for n, each, one in pairs
        if one["engine"] != each["engine"] and collide(one, each) and (each["engine"], one["engine"]) not in waits
    ]
