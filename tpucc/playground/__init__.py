"""The playground's work: requests of a page as JSON, and answers as JSON.

`requests` says what may be asked. `engine` answers, and knows of no page; `making` compiles for it, and `comparing` compares. In the page
it runs in Pyodide, in a worker of the browser. `server` hands the same page out on the loopback interface and answers with this Python, in
a child process (`tpucc.guest`) that can be ended. So passes and stages of the visitor's run in the engine's own process.
"""
