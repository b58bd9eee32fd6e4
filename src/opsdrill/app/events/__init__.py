"""Following runs as they go: what the store keeps, told in order, with a place to go on from.

    news       one thing that is told, and the window of the latest
    position   where a follower stands in one run
    run_news   what the store has of a run behind a position
    run_tail   one run, for all who follow it
    progress   where a follower stands in a batch, or in all runs
    runs_tail  the states of many runs, likewise
    followers  who follows what, with limits

The store is the only source, so that nothing is told that could not be told again. The engine only
says when to look; a run that another process works on is looked at now and then.
"""
