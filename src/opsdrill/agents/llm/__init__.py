"""The built-in agent: a planner makes turns of tasks, one model with tools works on each task.

job       the whole: plan, turn, plan again, resolve
planner   the ticket and what became of the turns -> the next turn, or the resolution
worker    one task: a model with tools on one host
tools     what that model can do there    servers  and over MCP
fence     what tools return is data, and marked so that it cannot pretend to be anything else
provider  a model by its name             watched  asked again when refused, and listened to
meter     budgets
"""
