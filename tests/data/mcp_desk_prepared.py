"""A preparation file for ``mcp_desk.py``: a probe, and a trace of the forks."""

seen: list[str] = []


def before_import(options):
    """Remember what was given."""
    seen.append(f"before {options['word']}")


def after_import(_module, options):
    """Remember what was given."""
    seen.append(f"after {options['word']}")


def after_fork(kind, module):
    """Remember the kind of process, and reach into the server."""
    seen.append(kind)
    module.items["prepared"] = {"id": "prepared", "state": kind}


PROBES = {"seen": lambda _module, argument: [argument, *seen]}
