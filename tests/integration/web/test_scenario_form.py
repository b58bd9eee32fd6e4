"""The scenario form in a browser: written from nothing, refused, saved, run, tried and changed."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect
from tests.integration.browser import NARROW, WIDE, Site, Visit, visit
from tests.integration.web.test_pages_plain import client
from tests.unit.api.drills import over

from opsdrill.app import scenarios
from opsdrill.model.rules import RESOLUTIONS, VALIDATORS, WHERES

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[31m\u202eevil\u200b\u2066"
STEP = {"run": "true", "on": "web-01", "user": "root", "timeout": 5, "exit_code": 1}
EVERYTHING: dict[str, Any] = {
    "key": "everything",
    "title": "Everything",
    "description": "All keys of the format",
    "tags": ["one"],
    "ticket_title": "It is broken",
    "ticket_body": "Please mend it",
    "hosts": ["web-01", {"name": "web-02", "image": "debian"}],
    "operational_rules": ["Be careful"],
    "files": [{"from": "a", "to": "/a", "on": "web-01", "mode": "0644", "owner": "root"}],
    "requires": {"commands": ["curl"], "by_host": {"web-01": ["jq"]}, "users": True,
                 "systemd": True},
    "setup": [STEP],
    "ready": [{"run": "true", "on": "web-01", "user": "root", "exit_code": 0, "fails": False,
               "within": 3}],
    "replies": [{"when": "may I", "after": 1, "body": "yes"}],
    "reference": [STEP],
    "restore": [STEP],
    "limits": {"job_seconds": 60, "command_seconds": 10, "setup_seconds": 20},
    "validation": [
        {"label": "a", "validator": "host_state", "required": True, "run": "true", "on": "web-01",
         "exit_code": 0},
        {"label": "b", "validator": "job_resolution_status", "required": False,
         "statuses": ["success"]},
        {"label": "c", "validator": "pattern_match", "required": True, "pattern": "x",
         "where": "executed_commands", "negate": True},
        {"label": "d", "validator": "task_count", "required": True, "min": 0, "max": 9},
        {"label": "e", "validator": "turns", "required": True,
         "turns": [{"hosts": ["web-01"], "at_least": 1}]},
    ],
}  # fmt: skip
PLACES = {
    "HostSpec": "hosts[1]",
    "SupportFile": "files[0]",
    "Requires": "requires",
    "Step": "setup[0]",
    "ReadyCheck": "ready[0]",
    "Reply": "replies[0]",
    "Limits": "limits",
    "HostState": "validation[0]",
    "JobResolutionStatus": "validation[1]",
    "PatternMatch": "validation[2]",
    "TaskCount": "validation[3]",
    "Turns": "validation[4]",
    "TurnItem": "validation[4].turns[0]",
}
"""Where the parts of the JSON Schema stand in `EVERYTHING`."""


def at(page: Page, path: str) -> Locator:
    """The control of a path."""
    return page.locator(f"[id='{path}']")


def wrong(page: Page, path: str) -> Locator:
    """What is said to be wrong at a path."""
    return page.locator(f"[data-problems='{path}']")


async def opened(made: Visit, path: str) -> Page:
    await made.go(path)
    await expect(made.page.locator("[id='validation.add']")).to_be_visible()
    return made.page


async def in_json(page: Page, text: str) -> None:
    """Put a text in the JSON tab, and go back to the form."""
    await page.get_by_role("tab", name="JSON").click()
    await page.locator("#text").fill(text)
    await page.get_by_role("tab", name="Form").click()


async def text_of(page: Page) -> str:
    await page.get_by_role("tab", name="JSON").click()
    text = await page.locator("#text").input_value()
    await page.get_by_role("tab", name="Form").click()
    return text


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Save", exact=True).click()


async def kept(site: Site, key: str, **more: object) -> dict[str, Any]:
    """A scenario in the store, made anew."""
    body = {
        "key": key,
        "title": f"Of {key}",
        "ticket_title": "It is broken",
        "hosts": ["web-01"],
        "validation": [{"label": "mended", "validator": "host_state", "run": "mended?"}],
        **more,
    }
    async with client(site) as api:
        await api.delete(f"/api/v1/scenarios/{key}", headers={"If-Match": "*"})
        answer = await api.post("/api/v1/scenarios", json=body)
        assert answer.status_code == 201, answer.text
    return body


async def run(api: httpx.AsyncClient, key: str, *agents: str, lab: str = "practice") -> list[str]:
    body = {"scenarios": [key], "agents": list(agents), "lab": lab}
    answer = await api.post("/api/v1/runs", json=body)
    assert answer.status_code == 202, answer.text
    runs = [one["id"] for one in answer.json()["runs"]]
    await over(api, runs)
    return runs


async def told(api: httpx.AsyncClient, key: str) -> dict[str, Any]:
    answer = await api.get(f"/api/v1/scenarios/{key}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_every_key_of_the_format_has_a_place_in_the_form(
    site: Site, chromium: Browser
) -> None:
    """No key is left to the JSON tab; every word that a rule can say is offered."""
    schema = json.loads(scenarios.schema("scenario"))
    wanted = set(schema["properties"])
    assert set(schema["$defs"]) == set(PLACES)
    for name, place in PLACES.items():
        wanted |= {f"{place}.{key}" for key in schema["$defs"][name]["properties"]}
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await in_json(page, json.dumps(EVERYTHING))
        script = "all => all.map(one => one.dataset.path)"
        found = await page.locator("[data-path]").evaluate_all(script)
        assert wanted - set(found) == set()
        for path, words in (
            ("validation[0].validator", VALIDATORS),
            ("validation[2].where", WHERES),
        ):
            options = at(page, path).locator("option")
            values = await options.evaluate_all("all => all.map(one => one.value)")
            assert set(values) == set(words)
        boxes = at(page, "validation[1].statuses").locator("input")
        assert await boxes.evaluate_all("all => all.map(o => o.value)") == list(RESOLUTIONS)
        for added, name in enumerate(VALIDATORS, start=len(EVERYTHING["validation"])):
            suffix = "" if name == "host_state" else f".{name}"
            await at(page, f"validation.add{suffix}").click()
            await expect(at(page, f"validation[{added}].label")).to_be_focused()
        await leave(page)


async def leave(page: Page) -> None:
    """Go away although nothing is saved."""
    page.on("dialog", lambda dialog: dialog.accept())
    await page.goto("about:blank")


NUMBERS = ("0", "1", "1.0", "-2.50", "1e3", "12345678901234567890", "0.1")
TEXTS = ("", "plain", "two\nlines", HOSTILE, "ünïcode \U0001f600 \u2028", "\\b \\\\ \"'", "web-01")
WORDS = ("web-01", "mon-01", "10", "__proto__", "constructor")


def made_up(seed: int) -> str:
    """A scenario that somebody may write, with all that the form does not know or expect."""
    chance = random.Random(seed)

    def text() -> str:
        return json.dumps(chance.choice(TEXTS), ensure_ascii=chance.random() < 0.5)

    def anything(depth: int = 0) -> str:
        kind = chance.randrange(8 if depth < 3 else 5)
        if kind == 0:
            return chance.choice(NUMBERS)
        if kind == 1:
            return chance.choice(("true", "false", "null"))
        if kind == 5:
            return f"[{', '.join(anything(depth + 1) for _ in range(chance.randrange(3)))}]"
        if kind == 6:
            keys = chance.sample(WORDS, chance.randrange(3))
            return "{" + ",".join(f'"{key}": {anything(depth + 1)}' for key in keys) + "}"
        return text()

    def given(value: object) -> str:
        if chance.random() < 0.06:
            return anything()
        if isinstance(value, dict):
            rows = [(key, given(one)) for key, one in value.items() if chance.random() < 0.85]
            if chance.random() < 0.2:
                rows.append((chance.choice(("unknown", "__proto__", "7")), anything()))
            chance.shuffle(rows)
            return "{" + ",\n ".join(f"{json.dumps(key)}: {one}" for key, one in rows) + "}"
        if isinstance(value, list):
            return f"[{', '.join(given(chance.choice(value)) for _ in range(chance.randrange(4)))}]"
        if isinstance(value, bool) or value is None:
            return json.dumps(value)
        if isinstance(value, int):
            return chance.choice(NUMBERS)
        return text() if chance.random() < 0.5 else json.dumps(value)

    required = ("curl", "users", "jq")
    short = chance.choice((list(required), {"web-01": ["jq"], "users": True}, None))
    return given({**EVERYTHING, "requires": short} if short else EVERYTHING)


def exact(text: str) -> object:
    """What a JSON text says, to the last digit."""

    def written(digits: str) -> tuple[str]:
        return (digits,)

    return json.loads(text, parse_int=written, parse_float=written)


TOUCH = """all => {
  for (const one of all) {
    one.dispatchEvent(new Event("input", { bubbles: true }));
    if (one.type === "text" || one.tagName === "TEXTAREA") {
      one.dispatchEvent(new Event("change", { bubbles: true }));
    }
  }
}"""


async def test_nothing_is_lost_between_form_and_json(site: Site, chromium: Browser) -> None:
    """JSON -> form -> JSON, untouched and after a change, of the packs' scenarios and others."""
    async with client(site) as api, visit(chromium, site) as made:
        texts = [made_up(seed) for seed in range(40)]
        texts = [text for text in texts if text.startswith("{")]
        assert len(texts) > 30
        for row in (await api.get("/api/v1/scenarios?limit=200")).json()["scenarios"]:
            export = await api.get(f"/api/v1/scenarios/{row['key']}/export?format=json")
            texts += [export.text, json.dumps(exact(export.text))]
        page = await opened(made, "/scenarios/new")
        for text in texts:
            await in_json(page, text)
            await page.locator("#fields :is(input, textarea):not([type=file])").evaluate_all(TOUCH)
            assert await text_of(page) == text
            # A change has the whole of it written anew.
            description = at(page, "description")
            if await description.get_attribute("type") != "button":
                await description.fill("otherwise")
            after = await text_of(page)
            wanted, found = exact(text), exact(after)
            assert isinstance(wanted, dict) and isinstance(found, dict)
            for data in (wanted, found):
                data.pop("description", None)
            assert found == wanted, text
        await leave(page)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{\n "key": "a",\n "key": "b"\n}', 3, "stands twice"),
        ('{\n "key": 01\n}', 2, "a comma or }"),
        ("key: a\n", 1, "there must be a value here"),
        ("[]", 1, "a scenario is an object"),
        ('{"a": "\t"}', 1, "a text in double quotes"),
        ('{"a": 1,}', 1, "a text in double quotes"),
        ("[" * 100, 1, "nested too deep"),
    ],
)
async def test_what_is_no_json_stays_in_its_tab_and_names_its_line(
    site: Site, chromium: Browser, text: str, line: int, said: str
) -> None:
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await in_json(page, text)
        await expect(page.locator("#text")).to_be_focused()
        await expect(page.locator("#problems li").first).to_contain_text(said)
        await expect(page.locator("#gutter .wrong")).to_have_text(str(line))
        await expect(page.locator("#fields")).to_be_hidden()
        await leave(page)


async def test_what_is_no_json_is_not_saved_and_its_line_comes_into_sight(
    site: Site, chromium: Browser
) -> None:
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await page.get_by_role("tab", name="JSON").click()
        text = page.locator("#text")
        await text.fill('{\n"key" "a",' + "\n" * 100 + "}")
        await text.press("Control+End")
        await save(page)
        await expect(page.locator("#status")).to_have_text("Not saved: 1 error.")
        await expect(text).to_be_focused()
        assert await text.evaluate("one => [one.scrollTop, one.selectionStart]") == [0, 8]
        await leave(page)


async def test_the_name_of_an_added_host_is_typed_over(site: Site, chromium: Browser) -> None:
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await at(page, "hosts.add").click()
        await page.keyboard.type("mon-01")
        await expect(at(page, "hosts[1].name")).to_have_value("mon-01")
        await leave(page)


async def test_a_scenario_is_written_from_nothing_refused_and_saved(
    site: Site, chromium: Browser
) -> None:
    """Each kind of refusal stands at its field, and the fields stay as they are."""
    async with client(site) as api:
        await api.delete("/api/v1/scenarios/written", headers={"If-Match": "*"})
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await save(page)
        await expect(page.locator("#status")).to_contain_text("Not saved")
        await expect(at(page, "key")).to_be_focused()
        await expect(wrong(page, "title")).to_contain_text("must not be blank")
        await at(page, "key").fill("patch-web-hosts")
        await at(page, "title").fill("Written here")
        await at(page, "ticket_title").fill("It is broken")
        await at(page, "validation.add.pattern_match").click()
        await at(page, "validation[0].pattern").fill("\\b(mend")
        await at(page, "validation.add").click()
        await at(page, "validation[1].label").fill("mended")
        await at(page, "validation[1].run").fill("mended?")
        await in_json(page, (await text_of(page)).replace('"mended?"', '"mended?", "on": "web-09"'))
        await save(page)
        await expect(wrong(page, "validation[0].label")).to_contain_text("must not be blank")
        await expect(wrong(page, "validation[0].pattern")).to_contain_text("is no valid pattern")
        await expect(wrong(page, "validation[1].on")).to_contain_text("host")
        await expect(at(page, "validation[0].label")).to_be_focused()
        await made.looked_over("scenario-form-refused")
        await page.get_by_role("tab", name="JSON").click()
        await expect(page.locator("#gutter .wrong")).to_have_count(3)
        await made.looked_over("scenario-form-json")
        await page.get_by_role("tab", name="Form").click()
        await at(page, "validation[1].on").select_option("web-01")
        await at(page, "validation[0].label").fill("mended by hand")
        await at(page, "validation[0].pattern").fill("\x08mend")
        await save(page)
        await expect(wrong(page, "validation[0].pattern")).to_contain_text("OD020")
        suggestion = wrong(page, "validation[0].pattern").get_by_role("button")
        await expect(suggestion).to_have_text("Use \\bmend")
        await suggestion.click()
        await expect(at(page, "validation[0].pattern")).to_have_value("\\bmend")
        await save(page)
        await expect(wrong(page, "key")).to_contain_text("choose another")
        await at(page, "key").fill("written")
        made.expected("409")
        await save(page)
        await page.wait_for_url("**/scenarios/written")
        await expect(page.get_by_role("link", name="Run it")).to_be_visible()
    async with client(site) as api:
        found = (await told(api, "written"))["scenario"]
        assert [rule["label"] for rule in found["validation"]] == ["mended by hand", "mended"]
        assert found["validation"][1]["on"] == "web-01"


async def test_warnings_of_lint_stand_beside_the_field_and_do_not_refuse(
    site: Site, chromium: Browser
) -> None:
    await kept(site, "warned")
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/warned/edit")
        await at(page, "validation.add.pattern_match").click()
        await at(page, "validation[1].label").fill("asked it")
        await at(page, "validation[1].pattern").fill("ping 10.0.0.1")
        trap = wrong(page, "validation[1].pattern")
        await expect(trap).to_contain_text("unescaped dot")
        await trap.get_by_role("button", name="Use ping 10\\.0\\.0\\.1").click()
        await expect(trap).to_be_empty()
        await at(page, "validation[1].pattern").fill("ping 10.0.0.1")
        await expect(trap).to_contain_text("unescaped dot")
        await save(page)
        await page.wait_for_url("**/scenarios/warned")


async def test_what_is_told_of_a_rule_goes_along_when_it_moves(
    site: Site, chromium: Browser
) -> None:
    """Before anybody checked again: a suggestion is for the rule that it was made for."""
    said = {"validator": "pattern_match", "where": "executed_commands"}
    both = [{**said, "label": "a", "pattern": "ping 10.0.0.1"}, {**said, "label": "b"}]
    both[1]["pattern"] = "dig example"
    await kept(site, "goes-along", validation=both)
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/goes-along/edit")
        await expect(wrong(page, "validation[0].pattern")).to_contain_text("unescaped dot")
        held = asyncio.Event()

        async def hold(route: Route) -> None:
            await held.wait()
            await route.continue_()

        await page.route("**/validate*", hold)
        await at(page, "validation[0].down").click()
        trap = wrong(page, "validation[1].pattern")
        await expect(wrong(page, "validation[0].pattern")).to_be_empty()
        await trap.get_by_role("button", name="Use ping 10\\.0\\.0\\.1").click()
        await expect(at(page, "validation[0].pattern")).to_have_value("dig example")
        await expect(at(page, "validation[1].pattern")).to_have_value("ping 10\\.0\\.0\\.1")
        held.set()
        await expect(trap).to_be_empty()
        await leave(page)


async def test_rules_are_added_moved_duplicated_changed_and_removed_by_keyboard(
    site: Site, chromium: Browser
) -> None:
    await kept(site, "keys")
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/keys/edit")
        await at(page, "validation.add.turns").focus()
        await page.keyboard.press("Enter")
        await page.keyboard.type("in turns")
        await tab_to(page, "Hosts", "web-01")
        await page.keyboard.press("Space")
        assert (await rules(page))[1] == {
            "label": "in turns",
            "validator": "turns",
            "turns": [{"hosts": ["web-01"]}],
        }
        await at(page, "validation[1].label").focus()
        await page.keyboard.press("Alt+ArrowUp")
        assert [rule["label"] for rule in await rules(page)] == ["in turns", "mended"]
        await at(page, "validation[0].copy").focus()
        await page.keyboard.press("Enter")
        await expect(at(page, "validation[1].label")).to_be_focused()
        await page.keyboard.press("Control+A")
        await page.keyboard.type("counted")
        await page.keyboard.press("Tab")
        await page.keyboard.type("Task count")
        await expect(at(page, "validation[1].min")).to_be_visible()
        assert (await rules(page))[1] == {"label": "counted", "validator": "task_count", "min": 1}
        await at(page, "validation[1].validator").select_option("turns")
        assert (await rules(page))[1]["turns"] == [{"hosts": ["web-01"]}]
        await at(page, "validation[1].down").focus()
        await page.keyboard.press("Enter")
        labels = [rule["label"] for rule in await rules(page)]
        assert labels == ["in turns", "mended", "counted"]
        await at(page, "validation[0].remove").focus()
        await page.keyboard.press("Enter")
        await expect(at(page, "validation[0].remove")).to_be_focused()
        await page.keyboard.press("Control+z")
        await expect(at(page, "validation[0].label")).to_be_focused()
        labels = [rule["label"] for rule in await rules(page)]
        assert labels == ["in turns", "mended", "counted"]
        await at(page, "validation[0].remove").focus()
        await page.keyboard.press("Enter")
        assert [rule["label"] for rule in await rules(page)] == ["mended", "counted"]
        await at(page, "title").focus()
        await page.keyboard.press("Control+s")
        await page.wait_for_url("**/scenarios/keys")


async def test_what_was_removed_can_be_taken_back_as_long_as_that_is_told(
    site: Site, chromium: Browser
) -> None:
    """By its button, also when its section was made anew; in a field Ctrl+Z is the field's own."""
    await kept(site, "taken-back")
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/taken-back/edit")
        toast = page.locator("#toast")
        await at(page, "validation.add.turns").click()
        await page.keyboard.type("in turns")
        await at(page, "validation[0].remove").click()
        await expect(toast).to_contain_text("Rule 0 is removed.")
        await made.shot("scenario-form-removed")
        await at(page, "validation[0].label").press("End")
        await page.keyboard.type("!")
        await page.keyboard.press("Control+z")
        await expect(toast).to_be_visible()
        await toast.get_by_role("button", name="Undo").click()
        await expect(toast).to_be_hidden()
        await expect(at(page, "validation[1].label")).to_have_value("in turns")
        await expect(at(page, "validation[0].label")).to_have_value("mended")
        await at(page, "validation[1].remove").click()
        await page.get_by_role("tab", name="JSON").click()
        await expect(toast).to_be_hidden()
        await leave(page)


WATCHED = """() => {
  const found = { made: [], moved: 0, gone: 0, other: [] };
  window.watched = found;
  for (const one of document.querySelectorAll("#fields *")) one.known = true;
  const sets = (node) => node.nodeType !== 1 ? []
    : [node, ...node.querySelectorAll("*")].filter((one) => one.localName === "fieldset");
  window.watcher = new MutationObserver((records) => {
    for (const { type, target, attributeName, addedNodes, removedNodes } of records) {
      if (target.matches("[data-problems]") || attributeName === "aria-invalid") continue;
      const own = target.closest("fieldset")?.id ?? "";
      if (type === "attributes") found.other.push(`${own} ${attributeName}`);
      for (const node of addedNodes) {
        if (node.known) found.moved += 1;
        else for (const set of sets(node)) found.made.push(set.id);
        if (node.nodeType === 1 && own) found.other.push(`${own} ${node.localName}`);
      }
      for (const node of removedNodes) found.gone += Number(sets(node).length > 0);
    }
  });
  const all = { subtree: true, childList: true, attributes: true };
  watcher.observe(document.getElementById("fields"), all);
}"""
"""Notes which field sets are made, moved and removed, and what else changes but for problems."""
NEWS = "new Promise((done) => setTimeout(() => { watcher.disconnect(); done(watched); }))"


async def watched(page: Page, control: str, key: str = "Enter") -> dict[str, Any]:
    """What changes in the form when a control gets a key."""
    await at(page, control).focus()
    await page.evaluate(WATCHED)
    await page.keyboard.press(key)
    found: dict[str, Any] = await page.evaluate(NEWS)
    others = [one for one in found["other"] if one.split()[0] not in found["made"]]
    return found | {"other": others}


async def test_whatever_becomes_of_one_rule_the_fields_of_the_others_stay(
    site: Site, chromium: Browser
) -> None:
    """In a form of many rules no other field set is made anew, whatever is done to one of them."""
    every = [{**rule, "label": f"{n}"} for n in range(9) for rule in EVERYTHING["validation"]]
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await in_json(page, json.dumps({**EVERYTHING, "validation": every}))
        await expect(page.locator("#status")).to_contain_text("1 error")
        nothing: dict[str, Any] = {"made": [], "moved": 0, "gone": 0, "other": []}
        assert await watched(page, "validation[7].label", "x") == nothing
        assert await watched(page, "validation[7].pattern", "x") == nothing
        found = await watched(page, "validation.add")
        # The rule that was the last one can be moved down now.
        last = {"made": ["validation[45].item"], "other": ["validation[44].item disabled"]}
        assert found == nothing | last
        names = ("id", "for", "data-path", "data-problems", "aria-describedby", "aria-labelledby")
        numbers = {*names, "aria-label", "disabled"}
        for control, key, change in (
            ("validation[2].copy", "Enter", {"made": ["validation[3].item"]}),
            ("validation[20].up", "Enter", {"moved": 1, "gone": 1}),
            ("validation[30].label", "Alt+ArrowDown", {"moved": 1, "gone": 1}),
            ("validation[3].remove", "Enter", {"gone": 1}),
            ("validation[2].negate", "Space", {"made": ["validation[2].item"], "gone": 1}),
        ):
            found = await watched(page, control, key)
            assert {one.split()[-1] for one in found["other"]} <= numbers, control
            assert found | {"other": []} == nothing | change, control
        await leave(page)


ALIKE = """() => [...document.querySelectorAll("#fields *:not([data-problems] *)")].map((one) => {
  const named = [...one.attributes].filter(({ name }) => name !== "aria-invalid");
  const told = named.map(({ name, value }) => `${name}=${value}`).sort();
  const text = one.children.length ? "" : one.matches("[data-problems]") ? "" : one.textContent;
  return [one.localName, ...told, one.value ?? "", String(one.checked), text].join("|");
})"""
"""All that a form has, problems apart."""


async def test_a_form_that_was_changed_is_the_form_of_its_json(
    site: Site, chromium: Browser
) -> None:
    """Rules, steps and turns are numbered by their places, however they came there."""
    chance = random.Random(7)
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await in_json(page, json.dumps(EVERYTHING))
        script = """([places, chance]) => {
          const own = "> .item-place > .item > .item-head > .item-actions > button:enabled";
          const acts = places.map((place) => `[id='${place}.all']`).flatMap((all) =>
            [...document.querySelectorAll(`${all} ${own}, ${all} > .actions > button`)],
          ).filter((one) => !one.hidden);
          const act = acts[Math.floor(chance * acts.length)];
          const said = act.id;
          act.click();
          return said;
        }"""
        counts = "all => new Set(all.map(one => one.id)).size === all.length"
        for _ in range(12):
            acts = []
            for _ in range(5):
                turns = await page.locator(".items .items").evaluate_all(
                    "all => all.map(one => one.dataset.path)"
                )
                places = ["validation", "setup", "ready", "files", "replies", *turns]
                acts.append(await page.evaluate(script, [places, chance.random()]))
                focused = await page.evaluate("document.activeElement.id")
                assert focused, acts
                assert await page.locator("#fields [id]").evaluate_all(counts), acts
            before = await page.evaluate(ALIKE)
            await text_of(page)
            assert await page.evaluate(ALIKE) == before, acts
        await leave(page)


async def rules(page: Page) -> list[dict[str, Any]]:
    """The rules as the JSON tab has them; the focus stays where it is afterwards."""
    focused = await page.evaluate("document.activeElement.id")
    found: list[dict[str, Any]] = json.loads(await text_of(page))["validation"]
    if focused:
        await at(page, focused).focus()
    return found


async def tab_to(page: Page, group: str, value: str) -> None:
    """Press Tab until the box with a value has the focus; it must be seen to have it."""
    for _ in range(40):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.value") == value:
            outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none"
            return
    raise AssertionError(f"Tab never came to {value!r} of {group}")


async def test_a_scenario_is_written_by_keyboard_alone(site: Site, chromium: Browser) -> None:
    """From the empty form to a kept scenario without a mouse."""
    async with client(site) as api:
        await api.delete("/api/v1/scenarios/typed", headers={"If-Match": "*"})
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await tab_until(page, "key")
        await page.keyboard.type("typed")
        await tab_until(page, "title")
        await page.keyboard.type("Typed")
        await tab_until(page, "ticket_title")
        await page.keyboard.type("It is broken")
        await tab_until(page, "validation.add")
        await page.keyboard.press("Enter")
        await page.keyboard.type("mended")
        await tab_until(page, "validation[0].run")
        await page.keyboard.type("mended?")
        await tab_until(page, "save")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/scenarios/typed")
        await page.locator("body").focus()


async def tab_until(page: Page, control: str) -> None:
    for _ in range(120):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.id") == control:
            return
    raise AssertionError(f"Tab never came to {control!r}")


async def test_a_rule_is_tried_on_runs_the_flip_is_seen_and_regraded(
    site: Site, chromium: Browser
) -> None:
    said = {
        "label": "said so",
        "validator": "pattern_match",
        "where": "gateway_summary",
        "pattern": "mended",
    }
    body = await kept(site, "tried")
    async with client(site) as api, visit(chromium, site) as made:
        page = await opened(made, "/scenarios/tried/edit")
        await at(page, "validation.add.pattern_match").click()
        await at(page, "validation[1].try").click()
        await at(page, "validation[1].pattern").fill("mend")
        found = page.locator("[id='validation[1].try.found']")
        await expect(found).to_contain_text("no recorded runs of this scenario yet")
        await api.put(
            "/api/v1/scenarios/tried",
            json={**body, "validation": [*body["validation"], said]},
            headers={"If-Match": "*"},
        )
        await leave(page)
        good, bad = await run(api, "tried", "good", "bad")
        page = await opened(made, "/scenarios/tried/edit")
        # Called as the verdicts call it.
        await expect(page.get_by_role("group", name="Rule 1", exact=True)).to_contain_text("Try it")
        await at(page, "validation[1].try").click()
        await expect(found).to_contain_text("Found in 1 of 1 value")
        await expect(found.locator("mark")).to_have_text("mended")
        await expect(found).to_contain_text("0 of 2 verdicts would flip")
        await at(page, "validation[1].pattern").press_sequentially(" by magic", delay=5)
        await expect(found).to_contain_text("1 of 2 verdicts would flip")
        await expect(found).to_contain_text("No value matches")
        await expect(found.locator(".flips + ul")).to_contain_text(good)
        await made.looked_over("scenario-form-try")
        # Broken rules elsewhere hide no matches.
        await at(page, "validation[0].label").fill("")
        await at(page, "validation[1].pattern").fill("all is")
        await expect(found.locator("mark")).to_have_text("all is")
        await expect(found).to_contain_text("cannot be told")
        made.expected("422")
        await at(page, "validation[1].pattern").fill("(")
        await expect(found).to_contain_text("is no valid pattern")
        made.expected("422")
        await at(page, "validation[0].label").fill("mended")
        await at(page, "validation[1].pattern").fill("by magic")
        await save(page)
        await page.wait_for_url("**/scenarios/tried")
        await page.get_by_role("link", name="What version 3 changed").click()
        await expect(page.locator(".changes")).to_contain_text("rule 1: said so")
        await expect(page.locator(".changes del")).to_have_text("mended")
        await expect(page.locator(".changes ins")).to_have_text("by magic")
        await made.looked_over("scenario-changes")
        order = {"runs": [good, bad], "rules": "tried", "preview": False}
        answer = await api.post("/api/v1/regrade", json=order)
        done = (await api.get(f"{answer.headers['location']}?wait=30")).json()
        assert done["state"] == "done" and done["changed"] == 2, done
        assert (await api.get(f"/api/v1/runs/{good}")).json()["verdict"] == "failed"


async def test_an_earlier_question_is_no_longer_of_interest(site: Site, chromium: Browser) -> None:
    """While somebody types, requests that were overtaken are given up."""
    await kept(site, "typed-on")
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/typed-on/edit")
        asked: list[str] = []
        page.on("request", lambda one: asked.append(one.url))
        await at(page, "title").press_sequentially("a longer title of it", delay=10)
        await expect(page.locator("#status")).to_contain_text("No problems")
        assert len([url for url in asked if "validate" in url]) <= 3
        await leave(page)


async def test_a_pattern_typed_on_gives_up_the_search_of_the_earlier_one(
    site: Site, chromium: Browser
) -> None:
    said = {"label": "x", "validator": "pattern_match", "where": "gateway_summary", "pattern": "a"}
    await kept(site, "overtaken", validation=[said])
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/overtaken/edit")
        await at(page, "validation[0].try").click()
        found = page.locator("[id='validation[0].try.found']")
        await expect(found).to_contain_text("no recorded runs")
        given_up: list[str] = []
        page.on("requestfailed", lambda one: given_up.append(one.post_data or ""))
        held: list[Route] = []

        async def hold(route: Route) -> None:
            held.append(route)
            if len(held) > 1:
                await route.continue_()

        await page.route("**/patterns/try", hold)
        await at(page, "validation[0].pattern").fill("first")
        await expect(found).to_have_attribute("aria-busy", "true")
        await expect(found.locator(".progress")).to_be_visible()
        await at(page, "validation[0].pattern").fill("second")
        await expect(found).not_to_have_attribute("aria-busy", "true")
        assert ["first" in body for body in given_up if "where" in body and "key" not in body] == [
            True
        ]
        await leave(page)


async def test_what_somebody_else_saved_meanwhile_is_told_and_nothing_is_lost(
    site: Site, chromium: Browser
) -> None:
    body = await kept(site, "both")
    async with client(site) as api, visit(chromium, site) as made:

        async def theirs(title: str) -> None:
            answer = await api.put(
                "/api/v1/scenarios/both",
                json={**body, "title": title, "tags": ["theirs"]},
                headers={"If-Match": "*"},
            )
            assert answer.status_code == 200, answer.text

        page = await opened(made, "/scenarios/both/edit")
        await theirs("Their title")
        await at(page, "validation[0].label").fill("my label")
        await save(page)
        notice = page.locator("#notice")
        await expect(notice).to_contain_text("saved version 2 of it meanwhile")
        await expect(notice).to_contain_text("Their title")
        await expect(notice).to_contain_text("my label")
        made.expected("412")
        await made.looked_over("scenario-form-meanwhile")
        await page.get_by_role("button", name="Take theirs into the form").click()
        await expect(at(page, "title")).to_have_value("Their title")
        await expect(at(page, "validation[0].label")).to_have_value("mended")
        await page.get_by_role("button", name="Back to mine").click()
        await expect(at(page, "validation[0].label")).to_have_value("my label")
        await expect(at(page, "title")).to_have_value("Of both")
        await theirs("Their other title")
        await save(page)
        await expect(notice).to_contain_text("Their other title")
        made.expected("412")
        await page.get_by_role("button", name="Save mine over theirs").click()
        await page.wait_for_url("**/scenarios/both")
        found = await told(api, "both")
        assert found["number"] == 4
        assert found["scenario"]["validation"][0]["label"] == "my label"
        earlier = (await api.get("/api/v1/scenarios/both/versions/3")).json()
        assert earlier["scenario"]["title"] == "Their other title"


async def test_changes_of_two_that_do_not_touch_are_joined(site: Site, chromium: Browser) -> None:
    body = await kept(site, "joined", tags=["a"])
    async with client(site) as api, visit(chromium, site) as made:
        page = await opened(made, "/scenarios/joined/edit")
        for label, joins in (("my label", True), ("my other label", False)):
            now = (await told(api, "joined"))["scenario"]["validation"]
            if not joins:
                now[0]["run"] = "theirs?"
            theirs = {**body, "title": f"Not {label}", "validation": now}
            await api.put("/api/v1/scenarios/joined", json=theirs, headers={"If-Match": "*"})
            await at(page, "validation[0].label").fill(label)
            await save(page)
            await expect(page.locator("#notice")).to_contain_text("meanwhile")
            made.expected("412")
            join = page.get_by_role("button", name="Join both in the form")
            await expect(join).to_have_count(int(joins))
            if joins:
                await join.click()
                await expect(at(page, "title")).to_have_value("Not my label")
                await expect(at(page, "validation[0].label")).to_have_value("my label")
                await save(page)
                await page.wait_for_url("**/scenarios/joined")
                found = (await told(api, "joined"))["scenario"]
                assert (found["title"], found["validation"][0]["label"]) == (
                    "Not my label",
                    "my label",
                )
                page = await opened(made, "/scenarios/joined/edit")
        await leave(page)


async def test_support_files_come_with_the_scenario_and_go(
    site: Site, chromium: Browser, tmp_path: Path
) -> None:
    async with client(site) as api, visit(chromium, site) as made:
        await api.delete("/api/v1/scenarios/drill-copy", headers={"If-Match": "*"})
        page = await opened(made, "/scenarios/new?from=drill")
        await expect(at(page, "key")).to_have_value("drill-copy")
        content = bytes(range(256)) * 10
        (tmp_path / "größe.bin").write_bytes(content)
        await page.get_by_label("In the folder").fill("files/")
        await page.get_by_label("Add files").set_input_files(tmp_path / "größe.bin")
        await page.get_by_role("button", name="Put files/größe.bin on hosts").click()
        await expect(at(page, "files[1].to")).to_be_focused()
        await page.keyboard.type("/etc/big")
        await expect(page.locator("#status")).to_have_text("No problems")
        await save(page)
        await page.wait_for_url("**/scenarios/drill-copy")
        files = {one["path"]: one["size"] for one in (await told(api, "drill-copy"))["files"]}
        assert files == {"app.conf": 10, "files/größe.bin": len(content)}
        path = "/api/v1/scenarios/drill-copy/files/files/gr%C3%B6%C3%9Fe.bin"
        assert (await api.get(path)).content == content
        page = await opened(made, "/scenarios/drill-copy/edit")
        await page.get_by_role("button", name="Remove the file app.conf").click()
        await save(page)
        await expect(wrong(page, "files[0].from")).to_contain_text("not among the files")
        await at(page, "files[0].remove").click()
        await save(page)
        await page.wait_for_url("**/scenarios/drill-copy")
        found = await told(api, "drill-copy")
        assert found["number"] == 2
        assert [one["path"] for one in found["files"]] == ["files/größe.bin"]


async def test_a_host_that_gets_another_name_has_it_wherever_it_is_named(
    site: Site, chromium: Browser
) -> None:
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/new")
        await in_json(page, json.dumps(EVERYTHING))
        await at(page, "hosts[0].name").fill("app-01")
        await expect(at(page, "setup[0].on")).to_contain_text("web-01 (no host of the scenario)")
        await at(page, "hosts[0].name").press("Tab")
        await expect(at(page, "hosts[0].image")).to_be_focused()
        await expect(at(page, "setup[0].on")).to_have_value("app-01")
        assert await text_of(page) != json.dumps(EVERYTHING)
        wanted = json.loads(json.dumps(EVERYTHING).replace("web-01", "app-01"))
        assert json.loads(await text_of(page)) == wanted
        # Another host's name is not taken over.
        await at(page, "hosts[0].name").fill("web-02")
        await at(page, "hosts[0].name").press("Tab")
        assert json.loads(await text_of(page))["setup"][0]["on"] == "app-01"
        await leave(page)


async def test_leaving_with_unsaved_changes_asks_first(site: Site, chromium: Browser) -> None:
    await kept(site, "left")
    async with visit(chromium, site) as made:
        page = await opened(made, "/scenarios/left/edit")
        asked: list[str] = []

        async def stay(dialog: Any) -> None:
            asked.append(dialog.type)
            await dialog.accept()

        page.on("dialog", stay)
        await page.get_by_role("link", name="Back to it").click()
        await page.wait_for_url("**/scenarios/left")
        assert asked == []
        page = await opened(made, "/scenarios/left/edit")
        await at(page, "title").fill("otherwise")
        await page.get_by_role("link", name="Back to it").click()
        await page.wait_for_url("**/scenarios/left")
        assert asked == ["beforeunload"]


async def test_without_scripts_the_json_is_edited_and_refused_with_its_lines(
    site: Site, chromium: Browser
) -> None:
    body = await kept(site, "plain")
    async with client(site) as api, visit(chromium, site, scripts=False) as made:
        page = made.page
        await made.go("/scenarios/plain/edit")
        text = await page.locator("#text").input_value()
        await page.locator("#text").fill(text.replace('"mended"', '""'))
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("validation[0].label")
        made.expected("422")
        assert '"label": ""' in await page.locator("#text").input_value()
        await api.put(
            "/api/v1/scenarios/plain",
            json={**body, "title": "Theirs"},
            headers={"If-Match": "*"},
        )
        await page.locator("#text").fill(text.replace('"mended"', '"mine"'))
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("saved version 2 of it meanwhile")
        made.expected("412")
        await page.get_by_role("button", name="Save").click()
        await page.wait_for_url("**/scenarios/plain")
        assert (await told(api, "plain"))["scenario"]["validation"][0]["label"] == "mine"


@SIZES
@SCHEMES
async def test_the_form_fits_and_can_be_used_by_everybody(
    site: Site, chromium: Browser, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    """With everything that the format has, hostile texts, and problems beside the fields."""
    hostile = {**EVERYTHING, "title": HOSTILE, "tags": [HOSTILE], "unknown": HOSTILE}
    hostile["setup"] = [{"run": HOSTILE, "on": "web-09"}, "no step"]
    async with visit(chromium, site, size=size, scheme=scheme) as made:
        page = await opened(made, "/scenarios/new")
        await made.looked_over("scenario-form-new")
        await in_json(page, json.dumps(hostile))
        await expect(page.locator("#status")).to_contain_text("errors")
        await expect(at(page, "title")).to_have_value(HOSTILE.replace("\n", ""))
        await expect(page.locator(".unseen").first).to_contain_text("U+202E")
        await expect(wrong(page, "setup[0].on")).not_to_be_empty()
        await made.looked_over("scenario-form-everything")
        await page.get_by_role("tab", name="JSON").click()
        await made.looked_over("scenario-form-everything-json")
        await leave(page)


async def test_who_may_not_edit_has_no_form(site: Site, chromium: Browser) -> None:
    async with client(site) as api:
        answer = await api.post("/api/v1/tokens", json={"name": "form reader", "role": "run"})
        secret = answer.json()["secret"]
    async with visit(chromium, site, token=secret) as made:
        await made.go("/scenarios/new")
        await expect(made.page.get_by_role("alert")).to_contain_text("takes the role edit")
        made.expected("403")
    async with visit(chromium, site) as made:
        await made.go("/scenarios/drill/edit")
        await expect(made.page.get_by_role("alert")).to_contain_text("only read here")
        made.expected("409")
        await made.go("/scenarios/gone/edit")
        made.expected("404")


@pytest.mark.sandbox
async def test_a_scenario_of_the_form_is_run_on_the_sandbox(site: Site, chromium: Browser) -> None:
    """Written in the form with a known right fix: doing nothing fails it, the fix passes."""
    async with client(site) as api, visit(chromium, site) as made:
        lab = (await api.get("/api/v1/labs/sandbox/health")).json()
        if not lab["usable"]:
            bad = [one for one in lab["findings"] if not one["good"]]
            pytest.skip(f"no sandbox hosts here: {bad}")
        await api.delete("/api/v1/scenarios/in-the-form", headers={"If-Match": "*"})
        page = await opened(made, "/scenarios/new")
        await at(page, "key").fill("in-the-form")
        await at(page, "title").fill("The flag is missing")
        await at(page, "ticket_title").fill("Please make /srv/flag")
        await at(page, "setup.add").click()
        await at(page, "setup[0].run").fill("rm -f /srv/flag")
        await at(page, "ready.add").click()
        await at(page, "ready[0].run").fill("test -e /srv/flag")
        await at(page, "ready[0].fails").check()
        await at(page, "reference.add").click()
        await at(page, "reference[0].run").fill("touch /srv/flag")
        await at(page, "validation.add").click()
        await at(page, "validation[0].label").fill("The flag is there")
        await at(page, "validation[0].run").fill("test -e /srv/flag")
        await save(page)
        await page.wait_for_url("**/scenarios/in-the-form")
        await page.get_by_role("link", name="Run both controls").click()
        await page.get_by_label("Lab", exact=True).select_option("sandbox")
        await page.get_by_role("button", name="Start", exact=True).click()
        await page.wait_for_url(re.compile("/batches/"))
        batch = page.locator("#batch")
        await expect(batch).to_contain_text("2 of 2 over: 1 passed 1 failed", timeout=60_000)
