# Fails `programs`: its only program keeps the rule.
def programs():
    return [HEAD.replace("ROWS", "1") + GOOD]
