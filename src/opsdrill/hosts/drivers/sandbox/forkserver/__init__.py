"""The fork server: a small process that makes hosts and runs commands in them.

It is started with an empty environment and holds nothing worth stealing. Only the standard
library, `messages` and `hosts/command` are imported, so that a fork of it costs a millisecond.
When its socket to OpsDrill ends, it kills all hosts and exits; the hosts in turn end when the
pipe that only the fork server holds ends.
"""
