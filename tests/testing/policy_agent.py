"""An agent without a framework whose model is a policy, asked in process."""

from tbadapters.core.context import running
from tbadapters.testing import ModelTurn, OfferedTool, TurnMessage


def policy_agent(policy, *, trial=True, parallel=True):
    """Return a callable agent that asks ``policy`` what to do, with or without naming its trial."""

    async def agent(message, ctx):
        offered = tuple(OfferedTool(t.name, t.description, t.parameters) for t in ctx.tools.values())
        said = ctx.state.setdefault("messages", [TurnMessage("system", ctx.instructions or "")])
        said.append(TurnMessage("user", message))
        while True:
            ref = running.get().trial if trial else None
            reply = policy.respond(ModelTurn("m", tuple(said), offered, trial=ref, parallel=parallel))
            said.append(TurnMessage("agent", reply.text or "", reply.calls))
            if not reply.calls:
                return reply.text
            for call in reply.calls:
                result = await ctx.tools[call.name].call(call.arguments)
                said.append(TurnMessage("tool", result.text, (), call.id))

    return agent
