    read_weights tile=0
    read_host_memory host=x.0 ub=0 rows={{rows}}
    synchronize engine=matrix wait=host
    matrix_multiply ub=0 acc=0 rows={{rows}}, switch
    synchronize engine=activation wait=matrix
    set_configuration block={{biased}}
    activate acc=0 ub={{rows}} inner={{rows}}
    set_configuration block={{relu}}
    activate acc=0 ub={{rows2}} inner={{rows}}
    synchronize engine=host wait=activation
    write_host_memory ub={{rows}} host=y.0 rows={{rows2}}
    halt
