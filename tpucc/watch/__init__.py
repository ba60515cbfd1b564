"""`tpucc watch`: the report on a local page that follows the source.

`changes` sees that a file is another one than before, `build` compiles and catches what goes wrong, `site` and `messages` make the pages
out of that (no clock, no socket, no file), `server` hands them out on the loopback interface, and `session` goes round.
"""
