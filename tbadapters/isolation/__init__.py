"""The agent in a process of its own: it reaches its tools, and nothing else of the run.

Runner, sandbox, expectation, grader, store and report stay here. Every attempt's agent has a fresh process that holds
a pipe of tool calls and an opaque id; what comes out of the pipe is checked like any input from a stranger.

    spec.py         what may be passed: a name by which the other process can import the agent
    agent.py        the adapter: the core's side of one attempt
    processes.py    the core's hold on the processes: begun, watched, ended
    wire.py         the messages on the pipe
    fork_server.py  the process that imports the agent once and forks one process for each attempt
    offspring.py    who descends from a process
    inside.py       one attempt, inside its process
"""
