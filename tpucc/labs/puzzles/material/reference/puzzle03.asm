    read_host_memory host=x.0 ub=0 rows={{rows}}
    set_configuration block={{table_block}}
    synchronize engine=activation wait=host
    vector function=table a=0 ub=0 inner={{rows}}
    synchronize engine=host wait=activation
    write_host_memory ub=0 host=y.0 rows={{rows}}
    halt
