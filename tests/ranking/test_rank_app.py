"""The page's requests: who may ask, what is saved, what is shown."""

from __future__ import annotations

import json

import pytest
from hostile import EVERYTHING, TURNED
from starlette.testclient import TestClient

from fakes import group_of
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.data.preference_records import read_rankings
from groundrule.data.records import write_groups
from groundrule.ranking.app import ranking_app
from groundrule.ranking.session import Session
from groundrule.ranking.tasks import read_source

HOME = "http://127.0.0.1:8765"
PAGE = {"origin": HOME}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.jsonl"


@pytest.fixture
def open_session(tmp_path, out):
    """A function that starts a session over groups; all are closed in the end."""
    opened = []

    def start(*groups, mode="order", annotator="ann", seed=None):
        write_groups(tmp_path / "groups.jsonl", groups)
        source = read_source(tmp_path / "groups.jsonl")
        opened.append(Session(source.asked, out, annotator=annotator, mode=mode, seed=seed))
        return opened[-1]

    yield start
    for session in opened:
        session.close()


def stranger(session, address=HOME):
    return TestClient(ranking_app(session, port=8765, token="sesame"), base_url=address)


@pytest.fixture
def session(open_session):
    return open_session(group_of("Yes.", "No.", "Perhaps."), group_of("Never.", "Ever."))


@pytest.fixture
def page(session):
    """A client that opened the printed address."""
    client = stranger(session)
    assert client.get("/?token=sesame").status_code == 200
    return client


def test_the_page_confines_itself_and_its_cookie_is_strict(session):
    reply = stranger(session).get("/?token=sesame")
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert reply.headers["referrer-policy"] == "no-referrer"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "sesame" not in cookie


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/rank.js", "/api/state", "/elsewhere"])
def test_without_the_token_nothing_is_answered(session, path):
    reply = stranger(session).get(path)
    assert reply.status_code == 403 and "token" in reply.text
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("address", ["http://example.com:8765", "http://127.0.0.1:1", "http://[::1]:8765"])
def test_another_host_is_refused_even_with_the_token(session, address):
    reply = stranger(session, address).get("/?token=sesame")
    assert reply.status_code == 403 and "host" in reply.text


@pytest.mark.parametrize(
    "origin", ["http://example.com", "null", "http://127.0.0.1:1", "https://127.0.0.1:8765"]
)
@pytest.mark.parametrize("path", ["/api/judge", "/api/skip", "/api/undo"])
def test_another_origin_is_refused_even_with_the_cookie(page, session, out, path, origin):
    body = {"task": session.current().key, "order": [[0], [1], [2]]}
    assert page.post(path, json=body, headers={"origin": origin}).status_code == 403
    assert page.post(path, json=body).status_code == 403
    assert out.read_bytes() == b""


def test_a_page_elsewhere_cannot_read_the_state(page):
    assert page.get("/api/state", headers={"origin": "http://example.com"}).status_code == 403


def test_the_state_names_no_score_no_id_and_no_scenario(open_session):
    members = [
        Trajectory(
            messages_and_choices=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": text}],
            reward=reward,
            metadata={"model": "secret-model"},
        )
        for text, reward in [("a", 0.125), ("b", 0.875)]
    ]
    client = stranger(open_session(TrajectoryGroup(members, scenario_id="secret-scenario")))
    said = client.get("/api/state?token=sesame").json()
    assert said["task"].keys() == {"key", "prompt", "tools", "answers"}
    assert sorted(a[0]["text"] for a in said["task"]["answers"]) == ["a", "b"]
    assert not any(word in json.dumps(said) for word in ("secret", "125", "875", "score"))


def test_a_judgement_is_in_the_file_before_it_is_answered(page, session, out):
    shown = [a[0]["text"] for a in page.get("/api/state").json()["task"]["answers"]]
    body = {"task": session.current().key, "order": [[2], [0, 1]]}
    said = page.post("/api/judge", json=body, headers=PAGE).json()
    [ranking] = read_rankings(out)
    assert [[ranking.answers[i].text for i in tier] for tier in ranking.tiers] == [shown[2:], shown[:2]]
    assert (ranking.annotator, ranking.source) == ("ann", "human")
    assert (said["done"], said["total"], len(said["task"]["answers"])) == (1, 2, 2)


def test_a_judgement_of_a_task_that_is_not_shown_is_refused(page, session, out):
    body = {"task": session.current().key, "order": [[0], [1], [2]]}
    assert page.post("/api/judge", json=body, headers=PAGE).status_code == 200
    assert page.post("/api/judge", json=body, headers=PAGE).status_code == 409
    assert len(read_rankings(out)) == 1


@pytest.mark.parametrize(
    "order",
    [[], [[0], [1]], [[0], [1], [1], [2]], [[0, 1, 2], []], [[0], [1], [3]], [[-1], [0], [1]], "best"],
)
def test_an_order_that_is_none_is_refused_and_nothing_is_saved(page, session, out, order):
    reply = page.post("/api/judge", json={"task": session.current().key, "order": order}, headers=PAGE)
    assert reply.status_code == 422 and reply.json()["error"]
    assert out.read_bytes() == b""


def test_a_body_without_end_is_refused(page):
    assert page.post("/api/skip", content=b"x" * 100_000, headers=PAGE).status_code == 413


def test_a_full_disk_is_said_and_the_task_stays(page, session, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("groundrule.ranking.session.append_ranking", full)
    body = {"task": session.current().key, "order": [[0], [1], [2]]}
    reply = page.post("/api/judge", json=body, headers=PAGE)
    assert reply.status_code == 500 and "not saved" in reply.json()["error"]
    assert session.current().key == body["task"]


def test_skip_and_undo_go_through_the_page(page, session):
    first = session.current().key
    assert page.post("/api/skip", json={"task": first}, headers=PAGE).json()["skipped"] == 1
    assert session.current().key != first
    assert page.post("/api/undo", json={}, headers=PAGE).json()["task"]["key"] == first


def test_hostile_answers_reach_the_page_as_text_in_which_nothing_is_hidden(open_session):
    client = stranger(open_session(group_of(*EVERYTHING)))
    reply = client.get("/api/state?token=sesame")
    texts = [a[0]["text"] for a in reply.json()["task"]["answers"]]
    [turned] = [text for text in texts if text.startswith("safe")]
    assert turned == (
        "safe[U+202E]txt.exe[U+2066] and [U+0000][U+001B][31m[U+0007] bell[U+200B] hidden [U+D800] half [U+E0041] tag"
    )
    assert TURNED not in texts and set(EVERYTHING) - {TURNED} <= set(texts)
    assert reply.headers["content-type"] == "application/json"


def test_prompt_tools_and_calls_are_readable(open_session):
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"id": 7}'}}
    picture = {"type": "image_url", "image_url": {"url": "http://example.com/tent.png"}}
    asked = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]},
    ]
    tools = [
        {"type": "function", "function": {"name": "look", "description": "Finds.", "parameters": {"a": 1}}}
    ]
    said = [
        [{"role": "assistant", "content": "", "tool_calls": [call]}],
        [{"role": "assistant", "content": "A tent."}],
    ]
    members = [Trajectory(messages_and_choices=[*asked, *answer], tools=tools) for answer in said]
    task = stranger(open_session(TrajectoryGroup(members))).get("/api/state?token=sesame").json()["task"]
    assert task["prompt"] == [
        {"role": "Instructions to the agent", "text": "Be brief."},
        {"role": "User", "text": "What is this?\n\n[image, not shown: http://example.com/tent.png]"},
    ]
    assert task["tools"] == [{"name": "look", "about": "Finds.", "parameters": '{\n  "a": 1\n}'}]
    assert sorted(a[0]["text"] for a in task["answers"]) == ["A tent.", 'calls look({"id": 7})']
