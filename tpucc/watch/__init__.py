"""`tpucc watch`: the report on a local page that follows the source.

`session` looks at the files again and again, and `build` compiles when one has other bytes, and catches what goes wrong. `site` and
`messages` make pages of the outcome (no clock, no socket, no file), and `server` hands them out on the loopback interface. `page` is the
page with the editor, and `editing` reads and writes the source for it.
"""
