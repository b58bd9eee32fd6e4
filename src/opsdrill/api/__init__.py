"""The REST API: FastAPI over the use cases of `opsdrill.app`. No logic of its own.

application  makes the application
service      what one serving process holds
entry        who calls, and whether they may
problems     errors of any kind as problem details; the one place
limits       sizes, hosts, origins
"""
