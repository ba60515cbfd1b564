.block bias=[{{bias}}] multiplier={{multiplier}} zero={{zero_y}}

    read_weights tile=0
    read_host_memory host=x.0 ub=0 rows={{rows}}
    set_configuration block=0
    synchronize engine=matrix wait=host
    matrix_multiply ub=0 acc=0 rows={{rows}}, switch
    synchronize engine=activation wait=matrix
    activate acc=0 ub=0 inner={{rows}}
    synchronize engine=host wait=activation
    write_host_memory ub=0 host=y.0 rows={{rows}}
    halt
