"""A run over HTTP: started, followed, cancelled, retried; then graded again with an edited rule.

    OPSDRILL_URL=http://127.0.0.1:8420 OPSDRILL_TOKEN=od_... \\
        python api_run.py SCENARIO AGENT SLOW_AGENT LAB

The token's role is `run`. Nothing is kept of the last step, which is a preview.
"""

import sys

from opsdrill.client import Client, Conflict

scenario, agent, slow_agent, lab = sys.argv[1:]

with Client() as drills:
    # Start, and follow until the result. A broken connection is gone on with by itself.
    [run] = drills.start_runs([scenario], [agent], lab=lab, labels={"from": "ci"}).runs
    for event in drills.follow_run(run.id):
        if event.kind == "phase":
            phase = event.data["phase"]
            print(phase["name"], phase["status"])
    print("verdict:", drills.read_run(run.id).verdict)
    for rule in drills.read_results(run.id).rules:
        print(f"  {rule.label}: {rule.status}. {rule.reason}")

    # Cancel: the answer comes when the run's hosts are given back.
    [slow] = drills.start_runs([scenario], [slow_agent], lab=lab).runs
    next(event for event in drills.follow_run(slow.id) if event.kind == "job")
    print("state:", drills.cancel_run(slow.id).state)
    try:
        print("retried as", drills.retry_run(slow.id).run)
    except Conflict as refused:
        print("not retried:", refused.message)

    # Edit a rule, and see what would flip.
    edited = drills.read_run_scenario(run.id).scenario
    edited["validation"][0]["required"] = False
    regrade = drills.regrade_runs(filter={"scenario": scenario}, rules=edited)
    for flip in drills.every_flip(regrade.id, wait=30):
        print(f"{flip.run}, {flip.rule}: {flip.before} -> {flip.after}")
