"""Bad input: the right status, one clear message, and a server that goes on; web pages of another origin."""

import asyncio
import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.run_folders import Finished
from tests.serving.server.conftest import Client, asking, beside
from unveil.errors import UnveilError
from unveil.serving.server.inference_service import InferenceService, JsonFormatter, Limits, Settings
from unveil.serving.server.middleware import Middleware, is_loopback
from unveil.serving.server.model_store import ModelStore

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"k": -1}, "k: Input should be greater than or equal to 1, found -1"),
        ({"k": 21}, "k: too many: found '21', expected at most 20."),
        ({"k": "many"}, "k: Input should be a valid integer"),
        ({"novelty": 1.5}, "novelty: Input should be less than or equal to 1"),
        ({"history": ["001"] * 201}, "history: too many: found '201', expected at most 200."),
        ({"history": "001"}, "history: Input should be a valid list, found '001'"),
        ({"history": [1]}, "history.0: Input should be a valid string, found 1"),
        ({"histroy": ["001"]}, "histroy: Extra inputs are not permitted"),
        ({"history": ["001"], "user": "0001"}, "a user and a history were both given"),
        ({"model": "rum"}, "unknown model: found 'rum', expected one of run. Did you mean 'run'?"),
        ({"where": ["genre~Drama"]}, "not a condition: found 'genre~Drama'"),
        ({"where": ["gender=Drama"]}, "unknown attribute: found 'gender', expected one of genre, year."),
        ({"where": ["year>=soon"]}, "year>=soon: not a number: found 'soon'"),
        ({"candidates": ["x"]}, "no item is left to recommend"),
        ([], "the request is no JSON object: send one, with the header Content-Type: application/json"),
    ],
)
def test_a_question_that_cannot_be_answered(question: object, message: str, client: Client) -> None:
    answer = client.post("/v1/recommend", json=question)
    assert answer.status_code == 422
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    "body", [b"{", b'{"k": }', b"\xff\xfe", b'{"k": 1} and more', b"[" * 20_000, b'{"k": 1' + b"0" * 5_000 + b"}"]
)
def test_what_is_not_json(body: bytes, client: Client) -> None:
    answer = client.post("/v1/recommend", content=body, headers=JSON)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("not JSON")


@pytest.mark.parametrize(
    ("body", "kind"), [(b"", "application/json"), (b'{"k": 1}', "application/x-www-form-urlencoded"), (b"1", "a")]
)
def test_a_body_that_is_missing_or_not_said_to_be_json(body: bytes, kind: str, client: Client) -> None:
    """As `curl -d` says, where no header is given."""
    answer = client.post("/v1/recommend", content=body, headers={"content-type": kind})
    assert answer.status_code == 422
    assert "send one, with the header Content-Type: application/json" in answer.json()["error"]


def test_names_that_a_client_made_up_are_told_in_short(client: Client) -> None:
    answer = client.post("/v1/recommend", content=b'{"\\ud800": 1}', headers=JSON)
    assert answer.status_code == 422
    assert "found '\\ud800'" in answer.json()["error"]
    long = client.post("/v1/recommend", json={"x" * 10_000: 1}).json()["error"]
    assert len(long) < 200


@pytest.mark.parametrize("path", ["/", "/health"])
def test_what_is_open_to_all_takes_no_body(path: str, store: ModelStore) -> None:
    """Else anybody could fill the memory, without a token and beyond the limit of requests at once."""
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body was asked for")

    async def send(message: Any) -> None:
        sent.append(message)

    middleware = Middleware(InferenceService(store, Settings(watch=None, token="sesame")))
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": [],
        "query_string": b"",
        "client": None,
    }
    asyncio.run(middleware(scope, receive, send))
    assert sent[0]["status"] == 200


def test_a_body_that_is_too_large(client: Client) -> None:
    answer = client.post("/v1/recommend", content=b" " * 50_001, headers=JSON)
    assert answer.status_code == 413
    assert answer.json()["error"] == "the request is too large: 50,001 bytes or more, at most 50,000"
    assert client.post("/v1/recommend", content=b"{}" + b" " * 49_998, headers=JSON).status_code == 200


def test_a_body_that_says_it_is_huge_is_not_waited_for(client: Client) -> None:
    answer = client.post("/v1/recommend", content=b"{}", headers={**JSON, "content-length": "99999999999"})
    assert answer.status_code == 413


def test_too_many_questions_at_once(client: Client) -> None:
    answer = client.post("/v1/recommend/batch", json={"questions": [{}] * 9})
    assert answer.status_code == 422
    assert answer.json()["error"] == "questions: too many: found '9', expected at most 8."
    assert client.post("/v1/recommend/batch", json={"questions": []}).status_code == 422


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"candidates": ["x"]}, "questions.2: no item is left to recommend."),
        ({"where": ["year>=soon"]}, "questions.2: year>=soon: not a number: found 'soon'"),
        ({"k": 21}, "questions.2: k: too many: found '21', expected at most 20."),
        ({"model": "rum"}, "questions.2: unknown model: found 'rum'"),
        ({"history": ["001"], "user": "0001"}, "questions.2: a user and a history were both given"),
        ({"k": -1}, "questions.2.k: Input should be greater than or equal to 1"),
    ],
)
def test_a_bad_question_of_a_batch_is_told_by_its_place(bad: dict[str, Any], message: str, client: Client) -> None:
    answer = client.post("/v1/recommend/batch", json={"questions": [{"user": "0001"}, {}, bad, {"history": ["001"]}]})
    assert answer.status_code == 422
    assert message in answer.json()["error"]


def test_the_place_is_that_in_the_batch_and_not_among_those_of_its_model(finished: Finished) -> None:
    store = ModelStore(beside())
    store.add([finished.folder, finished.folder])
    questions = [{"model": "run"}, {"model": "run-2"}, {"model": "run"}, {"model": "run-2", "candidates": ["x"]}]
    with asking(store, Settings(watch=None)) as client:
        answer = client.post("/v1/recommend/batch", json={"questions": questions})
    assert answer.json()["error"].startswith("questions.3: no item is left")


def test_the_work_of_one_request_is_bounded(store: ModelStore) -> None:
    """Histories of three known items, one of them twice: four passes a list; the model reads seven events."""
    history, long = ["001", "002", "x", "003", "001"], [f"0{n:02d}" for n in range(30)]
    with asking(store, Settings(watch=None, limits=Limits(passes=8))) as client:

        def status(*questions: dict[str, Any]) -> int:
            return client.post("/v1/recommend/batch", json={"questions": questions}).status_code

        asked: dict[str, Any] = {"history": history, "reasons": 2, "k": 1}
        assert status(asked, asked) == 200
        assert status(*[{**asked, "reasons": 0}] * 20) == 200
        assert status({"history": long, "reasons": 1, "k": 1, "filter_seen": False}) == 200  # 1 + 7
        assert status(asked, asked, {"history": [], "reasons": 5}) == 200
        refused = client.post("/v1/recommend/batch", json={"questions": [asked, asked, {**asked, "history": ["001"]}]})
    assert refused.status_code == 422
    assert "too many forward passes for one request: found '10', expected at most 8." in refused.json()["error"]
    assert "--max-passes" in refused.json()["error"]


def test_other_paths_and_methods(client: Client) -> None:
    assert client.get("/v1/recommend").status_code == 405
    assert client.get("/nothing").status_code == 404
    heads = [client.request("HEAD", path).status_code for path in ("/", "/health", "/v1/models", "/nothing")]
    assert heads == [200, 200, 200, 404]


@pytest.fixture
def locked(store: ModelStore) -> Iterator[Client]:
    with asking(store, Settings(watch=None, token="sésame")) as client:
        yield client


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", "Basic sésame", "sésame", "Bearer sésame2"])
def test_without_the_token_nothing_is_told(given: str, locked: Client) -> None:
    headers = {"authorization": given.encode()} if given else {}
    for method, path in (("POST", "/v1/recommend"), ("GET", "/v1/items"), ("GET", "/metrics"), ("POST", "/reload")):
        answer = locked.request(method, path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "Authorization: Bearer" in answer.json()["error"]


def test_with_the_token_all_is_well_and_the_page_and_health_need_none(locked: Client) -> None:
    for path in ("/", "/page.js", "/page.css", "/health", "/ready"):
        assert locked.get(path).status_code == 200
    headers = {"authorization": "bearer sésame".encode()}
    assert locked.post("/v1/recommend", json={}, headers=headers).status_code == 200


def test_ids_of_requests(client: Client) -> None:
    assert client.get("/health", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = client.get("/health", headers={"x-request-id": "a\tb" * 50}).headers["x-request-id"]
    assert len(made) == 16


def test_requests_are_counted_by_path_and_status(client: Client) -> None:
    def count(line: str) -> float:
        lines = client.get("/metrics").text.splitlines()
        return float(next((each.split()[-1] for each in lines if each.startswith(line)), 0))

    answered, missing = (
        'unveil_requests_total{path="/v1/recommend",status="200"}',
        'unveil_requests_total{path="other",status="404"}',
    )
    before = count(answered), count(missing), count("unveil_unknown_items_total"), count("unveil_fallbacks_total")
    client.post("/v1/recommend", json={"history": ["x", "y"]})
    client.get("/made/up/by/somebody")
    after = count(answered), count(missing), count("unveil_unknown_items_total"), count("unveil_fallbacks_total")
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1, 2, 1]
    assert count('unveil_request_seconds_count{path="/v1/recommend"}') >= 1
    assert count("unveil_requests_under_way") == 1  # the one that asks


def test_requests_are_logged_as_json_without_what_was_asked(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "unveil.server"):
        client.post("/v1/recommend", json={"history": ["001"], "user": None})
    line = json.loads(JsonFormatter().format(caplog.records[-1]))
    assert (line["event"], line["path"], line["status"], line["level"]) == ("request", "/v1/recommend", 200, "info")
    assert line["ms"] > 0
    assert "001" not in json.dumps({name: value for name, value in line.items() if name not in ("time", "id", "ms")})


def test_no_path_ends_a_line_of_the_log_or_steers_a_terminal(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "unveil.server"):
        client.get("/%0A%1B%5B2J%C2%9B2J%E2%80%A8")
    line = JsonFormatter().format(caplog.records[-1])
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["path"] == "/\n\x1b[2J\x9b2J\u2028"


def test_openapi_describes_the_paths_with_examples(client: Client) -> None:
    told = client.get("/openapi.json").json()
    assert {"/v1/recommend", "/v1/recommend/batch", "/v1/items", "/v1/models", "/health", "/ready", "/metrics"} <= told[
        "paths"
    ].keys()
    question = told["components"]["schemas"]["RecommendRequest"]
    for example in question["examples"]:
        assert example.keys() <= question["properties"].keys()
    assert {"200", "400", "401", "413", "422", "429"} <= told["paths"]["/v1/recommend"]["post"]["responses"].keys()


def test_the_page_needs_nothing_from_elsewhere(client: Client) -> None:
    for path in ("/", "/page.js", "/page.css"):
        answer = client.get(path)
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")  # a name, not a place
        assert "https://" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_beyond_what_is_taken_on_at_once_clients_are_told_to_come_back(store: ModelStore) -> None:
    async def all_at_once(client: Client) -> list[httpx.Response]:
        return await asyncio.gather(*(client.http.post("/v1/recommend", json={"history": ["001"]}) for _ in range(12)))

    with asking(store, Settings(watch=None, limits=Limits(concurrent=3))) as client:
        answers = client.runner.run(all_at_once(client))
        told = [answer for answer in answers if answer.status_code == 429]
        assert {answer.status_code for answer in answers} == {200, 429}
        assert told[0].headers["retry-after"] == "1"
        assert told[0].json()["error"] == "too many requests at once: at most 3; try again"
        assert client.get("/health").status_code == 200
        assert client.post("/v1/recommend", json={}).status_code == 200


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "prometheus_client", "onnx", "onnxruntime"])
def test_what_is_not_installed_is_named_with_the_command(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    module, extra = ("onnx_model", "export") if missing.startswith("onnx") else ("server", "serve")
    with pytest.raises(UnveilError, match=rf"pip install 'unveil\[{extra}\]'"):
        importlib.reload(importlib.import_module(f"unveil.serving.{module}"))


@pytest.mark.parametrize("limit", ["body", "history", "k", "batch", "passes", "concurrent", "seconds"])
def test_limits_are_above_nothing(limit: str) -> None:
    with pytest.raises(UnveilError, match=f"limit {limit}: out of range: found 0"):
        nothing: dict[str, Any] = {limit: 0}
        replace(Limits(), **nothing)


@pytest.mark.parametrize(
    ("name", "is_here"),
    [
        ("localhost", True),
        ("app.localhost", True),
        ("127.0.0.1", True),
        ("127.3.2.1", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_names_of_this_machine(name: str, is_here: bool) -> None:
    assert is_loopback(name) == is_here


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "10.0.0.1:8000", "[::2]", "a:b:c", "@"]
)
@pytest.mark.parametrize("path", ["/", "/v1/models", "/v1/items", "/metrics", "/openapi.json", "/nothing"])
def test_a_name_that_somebody_points_here_is_refused(host: str, path: str, client: Client) -> None:
    answer = client.get(path, headers={"host": host})
    assert answer.status_code == 403
    assert "--allow-host" in answer.json()["error"]


@pytest.mark.parametrize(
    "host", ["localhost:8000", "LOCALHOST", "localhost.", "127.0.0.1:80", "[::1]:8000", "x.localhost"]
)
def test_names_of_this_machine_are_answered(host: str, client: Client) -> None:
    assert client.get("/v1/models", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_those_who_look_after_it_may_call_it_what_they_like(path: str, client: Client) -> None:
    assert client.get(path, headers={"host": "pod-7.cluster"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:3000"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://[::1"},
        {"origin": "http://127.0.0.1:3000"},
    ],
)
@pytest.mark.parametrize("path", ["/reload", "/v1/recommend"])
def test_a_page_from_elsewhere_may_not_ask(headers: dict[str, str], path: str, client: Client) -> None:
    answer = client.post(path, json={}, headers=headers)
    assert answer.status_code == 403
    assert "a page of another origin" in answer.json()["error"]


@pytest.mark.parametrize(
    "headers", [{}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}, {"origin": "http://127.0.0.1"}]
)
def test_its_own_page_and_programs_may(headers: dict[str, str], client: Client) -> None:
    assert client.post("/v1/recommend", json={}, headers=headers).status_code == 200


@pytest.fixture
def proxied(store: ModelStore) -> Iterator[Client]:
    with asking(store, Settings(watch=None, hosts=["Films.example"])) as client:
        yield client


def test_a_proxy_may_call_it_by_a_name_that_was_given(proxied: Client) -> None:
    public = {"host": "films.example"}
    assert proxied.get("/v1/models", headers=public).status_code == 200
    assert proxied.get("/v1/models", headers={"host": "other.example"}).status_code == 403
    rewritten = {"origin": "https://films.example", "sec-fetch-site": "same-origin"}
    assert proxied.post("/v1/recommend", json={}, headers=rewritten).status_code == 200
    assert proxied.post("/v1/recommend", json={}, headers={"origin": "https://films.example"}).status_code == 200
    assert proxied.post("/reload", headers={"origin": "https://evil.example"}).status_code == 403


def test_with_a_token_or_for_others_any_name_will_do(store: ModelStore) -> None:
    with asking(store, Settings(watch=None, token="sesame")) as client:
        headers = {"authorization": "Bearer sesame", "host": "films.example", "origin": "https://elsewhere.example"}
        assert client.post("/v1/recommend", json={}, headers=headers).status_code == 200
    with asking(store, Settings(watch=None, host="0.0.0.0")) as client:
        assert client.get("/v1/models", headers={"host": "films.example"}).status_code == 200
        assert client.post("/reload", headers={"sec-fetch-site": "cross-site"}).status_code == 403
