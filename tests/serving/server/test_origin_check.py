"""A server without a token, and web pages that a browser on its machine shows."""

from collections.abc import Iterator

import pytest

from tests.serving.server.conftest import Client, asking
from unveil.serving.server.model_store import ModelStore
from unveil.serving.server.origin_check import is_loopback
from unveil.serving.server.process import Settings


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
