# Fails `programs`: they don't end in halt.
def programs():
    return [HEAD.replace("ROWS", rows) + code.replace("halt", "") for rows, code in TEXTS[RULE]]
