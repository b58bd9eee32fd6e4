"""Every operation of the API, by its name in the OpenAPI document; both clients have them."""

from __future__ import annotations

from opsdrill.client import batches, grading, labs, runs, scenarios, tokens
from opsdrill.client import health as watching
from opsdrill.client.operation import Operation, Pages, Stream


class Operations:
    """The operations; `every_...` goes through all pages of a listing."""

    health = Operation(watching.health)
    ready = Operation(watching.ready)
    metrics = Operation(watching.metrics)

    list_tokens = Operation(tokens.list_tokens)
    create_token = Operation(tokens.create_token)
    read_token = Operation(tokens.read_token)
    revoke_token = Operation(tokens.revoke_token)
    log_in = Operation(tokens.log_in)
    read_session = Operation(tokens.read_session)
    log_out = Operation(tokens.log_out)

    list_scenarios = Operation(scenarios.list_scenarios)
    every_scenario = Pages(scenarios.list_scenarios, lambda page: page.scenarios)
    create_scenario = Operation(scenarios.create_scenario)
    validate_scenario = Operation(scenarios.validate_scenario)
    read_scenario_schema = Operation(scenarios.read_scenario_schema)
    import_scenario = Operation(scenarios.import_scenario)
    read_scenario = Operation(scenarios.read_scenario)
    replace_scenario = Operation(scenarios.replace_scenario)
    patch_scenario = Operation(scenarios.patch_scenario)
    delete_scenario = Operation(scenarios.delete_scenario)
    export_scenario = Operation(scenarios.export_scenario)
    list_scenario_files = Operation(scenarios.list_scenario_files)
    read_scenario_file = Operation(scenarios.read_scenario_file)
    put_scenario_file = Operation(scenarios.put_scenario_file)
    remove_scenario_file = Operation(scenarios.remove_scenario_file)
    add_rule = Operation(scenarios.add_rule)
    replace_rule = Operation(scenarios.replace_rule)
    remove_rule = Operation(scenarios.remove_rule)
    list_scenario_versions = Operation(scenarios.list_scenario_versions)
    read_scenario_version = Operation(scenarios.read_scenario_version)

    grade_record = Operation(grading.grade_record)
    keep_records = Operation(grading.keep_records)
    try_pattern = Operation(grading.try_pattern)
    regrade_runs = Operation(grading.regrade_runs)
    list_regrades = Operation(grading.list_regrades)
    read_regrade = Operation(grading.read_regrade)
    every_flip = Pages(grading.read_regrade, lambda page: page.flips)
    cancel_regrade = Operation(grading.cancel_regrade)

    start_runs = Operation(runs.start_runs)
    list_runs = Operation(runs.list_runs)
    every_run = Pages(runs.list_runs, lambda page: page.runs)
    read_run = Operation(runs.read_run)
    delete_run = Operation(runs.delete_run)
    cancel_run = Operation(runs.cancel_run)
    retry_run = Operation(runs.retry_run)
    follow_run = Stream(runs.follow_run)
    follow_runs = Stream(runs.follow_runs)
    read_results = Operation(runs.read_results)
    list_grades = Operation(runs.list_grades)
    read_grade = Operation(runs.read_grade)
    list_phases = Operation(runs.list_phases)
    list_run_hosts = Operation(runs.list_run_hosts)
    list_evidence = Operation(runs.list_evidence)
    every_piece = Pages(runs.list_evidence, lambda page: page.items)
    read_evidence = Operation(runs.read_evidence)
    read_differences = Operation(runs.read_differences)
    read_record = Operation(runs.read_record)
    list_run_files = Operation(runs.list_run_files)
    read_run_file = Operation(runs.read_run_file)
    read_run_scenario = Operation(runs.read_run_scenario)

    list_batches = Operation(batches.list_batches)
    every_batch = Pages(batches.list_batches, lambda page: page.batches)
    read_batch = Operation(batches.read_batch)
    cancel_batch = Operation(batches.cancel_batch)
    retry_batch = Operation(batches.retry_batch)
    compare_runs = Operation(batches.compare_runs)
    read_trend = Operation(batches.read_trend)

    list_agents = Operation(labs.list_agents)
    list_labs = Operation(labs.list_labs)
    check_lab = Operation(labs.check_lab)
    list_leases = Operation(labs.list_leases)
