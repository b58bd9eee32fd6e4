"""The `ssh` driver: machines that exist, reached over SSH.

driver      the machines a run may have
ending      the connections of one run are closed
host        one of them: commands and files
link        its connection, made when needed, with bounded channels
exchange    one channel: a command, or a line of `hosts.command`, at work
residents   shells that stay a moment, so that commands in a row need no channel each
login       who logs in with what, and whether it is the right machine
arrival     the first words: how to be understood there
findings    the same for a person to read
reasons     why there is no connection, in plain words
"""
