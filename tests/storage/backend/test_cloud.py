"""Conditional writes: of two writers that saw the same version, the server lets exactly one succeed."""

from __future__ import annotations

import json

import pytest

from gapwise.storage.backend import ChangedError, UrlPath, backend, location
from gapwise.storage.backend import cloud as cloud_module
from gapwise.storage.backend.cloud import AZURE, GCS, S3, CloudBackend


def test_swap__on_s3_the_server_decides(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer does not look first, so nothing can come between a comparison and its write."""
    target = UrlPath(f"{s3}/between/x")
    storage = backend(target)
    version = storage.swap(target, b"1", None)
    target.write_bytes(b"the other's")
    with monkeypatch.context() as patch:
        patch.setattr(CloudBackend, "look", lambda *args: (None, None))
        for seen in (version, None):
            with pytest.raises(ChangedError):
                storage.swap(target, b"mine", seen)
    assert target.read_bytes() == b"the other's"


def test_swap__without_its_bucket_is_an_error_that_names_it(s3: str) -> None:
    target = UrlPath("s3://nosuchbucket/x")
    with pytest.raises(FileNotFoundError, match=r"s3://nosuchbucket/x: (.|\n)*NoSuchBucket"):
        backend(target).swap(target, b"1", None)


def test_swap__takes_the_credentials_of_s3fs(s3: str) -> None:
    """Also those that obstore does not look for: profiles, roles, keys given to fsspec."""
    options = cloud_module._s3_options(s3.removeprefix("s3://"))
    credentials = options["credential_provider"]()
    assert (credentials["access_key_id"], credentials["secret_access_key"]) == ("nobody", "nothing")
    assert options["endpoint"].startswith("http://127.0.0.1:")


@pytest.mark.parametrize("scheme", [*S3, *GCS, *AZURE])
def test_clouds__compare_and_write_in_one_request(scheme: str) -> None:
    assert isinstance(backend(UrlPath(f"{scheme}://bucket/x")), CloudBackend)


@pytest.mark.parametrize(
    ("url", "store"),
    [("gs://bucket/a/x", "GCSStore"), ("gcs://bucket/a/x", "GCSStore"), ("az://bucket/a/x", "AzureStore")],
)
def test_clouds__have_their_stores(url: str, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "someone")
    opened, key = cloud_module._object(UrlPath(url))
    assert (type(opened).__name__, key) == (store, "a/x")


def test_version__is_whatever_the_store_compares() -> None:
    assert json.loads(cloud_module._version({"e_tag": '"1"', "version": None})) == {"e_tag": '"1"'}
    assert json.loads(cloud_module._version({"e_tag": '"1"', "version": "7"})) == {"e_tag": '"1"', "version": "7"}


def test_locate__says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_module, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r'need obstore \(for s3://: pip install "gapwise\[s3\]"\)'):
        location("s3://bucket/runs")
