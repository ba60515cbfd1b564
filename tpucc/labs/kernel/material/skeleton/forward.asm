; Lab 14: y = relu(x @ w + b), with x {{forward.rows}}×{{forward.depth}} and w {{forward.depth}}×{{forward.columns}}
;
; Rows of vector memory, by names. You may change these lines and add some; from row {{forward.free}} on nothing is used yet.
{{forward.stays}}
.expression 0 "a + b"

    load hbm=w.0 y=w.0 rows={{forward.depth}}
    synchronize engine=weights wait=memory
    push_weights a=w.0 rows=128 lanes=128
    ; go on here
    halt
