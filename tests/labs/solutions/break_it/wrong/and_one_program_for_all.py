# Fails `detector 1`: one sound program can't show every bug.
def programs():
    return [
        ".target tiny\n.input x 1x4\n.output y 1x4\nread_host_memory host=x.0 ub=0 rows=1\nwrite_host_memory ub=0 host=y.0 rows=1\nhalt"
    ]
