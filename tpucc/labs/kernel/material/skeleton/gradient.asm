; Lab 14: dz = dy where y > 0, dx = dz @ (w transposed), dw = (x transposed) @ dz,
; with x {{gradient.rows}}×{{gradient.depth}} and w {{gradient.depth}}×{{gradient.columns}}
;
; Rows of vector memory, by names. You may change these lines and add some; from row {{gradient.free}} on nothing is used yet.
{{gradient.stays}}
.expression 0 "a * b"

    load hbm=w.0 y=w.0 rows={{gradient.depth}}
    synchronize engine=weights wait=memory
    push_weights a=w.0 rows=128 lanes=128, turned
    ; go on here
    halt
