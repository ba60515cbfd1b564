.target tiny
.input x 4x4
.output y 12x4
.block {{ties}}
.block {{few}}
.block {{wide}}
.tile
{{tile}}
    read_weights tile=0
    read_host_memory host=x.0 ub=0 rows=4
    synchronize engine=matrix wait=host
    matrix_multiply ub=0 acc=0 rows=4, switch
    synchronize engine=activation wait=matrix
    set_configuration block=0
    activate acc=0 ub=8 inner=4
    set_configuration block=1
    activate acc=0 ub=12 inner=4
    set_configuration block=2
    activate acc=0 ub=16 inner=4
    synchronize engine=host wait=activation
    write_host_memory ub=8 host=y.0 rows=12
    halt
