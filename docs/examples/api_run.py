"""A run over HTTP: started, followed, cancelled, retried; then graded again with an edited rule.

    OPSDRILL_URL=http://127.0.0.1:8420 OPSDRILL_TOKEN=od_... \\
        python api_run.py SCENARIO AGENT SLOW_AGENT LAB OTHER_LAB
"""
# ruff: noqa: T201

import sys

from opsdrill.client import Client

scenario, agent, slow_agent, lab, other_lab = sys.argv[1:]

with Client() as drills:
    # Start, and follow until the result; a broken connection is gone on with by itself.
    [run] = drills.start_runs([scenario], [agent], lab=lab, labels={"from": "ci"}).runs
    for event in drills.follow_run(run.id):
        if event.kind == "phase":
            print(event.data["phase"]["name"], event.data["phase"]["status"])
    print("verdict:", drills.read_run(run.id).verdict)
    for rule in drills.read_results(run.id).rules:
        print(f"  {rule.label}: {rule.status}. {rule.reason}")

    # Cancel as soon as the agent works; the answer comes when the run's hosts are given back.
    [slow] = drills.start_runs([scenario], [slow_agent], lab=lab).runs
    next(event for event in drills.follow_run(slow.id) if event.kind == "job")
    print("state:", drills.cancel_run(slow.id).state)

    # An error says nothing of the agent: retry it.
    [other] = drills.start_runs([scenario], [agent], lab=other_lab).runs
    *_, result = drills.follow_run(other.id)
    if result.data["verdict"] == "error":
        print("retried as", drills.retry_run(other.id).run)

    # Edit a rule, and see what would flip; `preview=False` keeps the new grades.
    edited = drills.read_run_scenario(run.id).scenario
    edited["validation"][0]["run"] = "test -e /no/such/file"
    regrade = drills.regrade_runs(filter={"scenario": scenario}, rules=edited)
    for flip in drills.every_flip(regrade.id, wait=30):
        print(f"{flip.run}, {flip.rule}: {flip.before} -> {flip.after}")
