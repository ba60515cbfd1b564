    read_weights tile=0
    read_host_memory host=x.0 ub=0 rows={{rows}}
    synchronize engine=matrix wait=host
    matrix_multiply ub=0 acc=0 rows={{rows}}, switch
    synchronize engine=host wait=matrix
    read_host_memory host=b.0 ub=0 rows={{rows}}
    set_configuration block=0
    synchronize engine=activation wait=host
    activate acc=0 ub={{rows}} inner={{rows}}
    vector function={{function}} a={{rows}} b=0 ub={{rows}} inner={{rows}}
    synchronize engine=host wait=activation
    write_host_memory ub={{rows}} host=y.0 rows={{rows}}
    halt
