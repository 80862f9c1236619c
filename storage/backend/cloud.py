"""S3, Google Cloud Storage and Azure: object stores that compare and write in a single request.

fsspec has no conditional writes, so `look` and `put` go through obstore. Of two writers that saw the same version,
exactly one succeeds.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from gapwise.records import Record
from gapwise.storage.backend.locations import GCS, S3, UrlPath, naming

if TYPE_CHECKING:
    from obstore.store import ObjectStore

RETRY_FOR = timedelta(seconds=20)
"""Longest time for which a request is retried; a lease has to be renewed before others take it over."""
CREDENTIALS_LAST = timedelta(minutes=5)
"""Time until credentials are asked for again; botocore renews those that expire."""


def look(where: UrlPath) -> tuple[bytes | None, str | None]:
    """(contents, version) of an object; (None, None) if it does not exist."""
    import obstore

    try:
        with naming(where):
            response = obstore.get(*_object(where))
            return bytes(response.bytes()), _version(response.meta)
    except FileNotFoundError:
        return None, None


def put(where: UrlPath, data: bytes, seen: str | None) -> str | None:
    """Write an object if it still has the version `seen` (None: does not exist); its new version, or None if it has not."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, PreconditionError

    mode: Any = "create" if seen is None else json.loads(seen)
    store, key = _object(where)
    try:
        with naming(where), contextlib.suppress(AlreadyExistsError, PreconditionError):
            return _version(obstore.put(store, key, data, mode=mode))
    except FileNotFoundError:
        if seen is None:  # so the bucket does not exist
            raise
    return None


def _version(meta: Mapping[str, object]) -> str:
    """What a conditional write compares: an ETag, a generation number, or both."""
    return json.dumps({name: meta[name] for name in ("e_tag", "version") if meta.get(name)})


def _object(where: UrlPath) -> tuple[ObjectStore, str]:
    """obstore's store of a bucket, and the name of `where` in it."""
    bucket, _, key = where.url.split("://", 1)[1].partition("/")
    with naming(where):
        return _store("gs" if where.scheme in GCS else where.scheme, bucket), key


@cache
def _store(scheme: str, bucket: str) -> ObjectStore:
    """obstore's store of a bucket: for S3 configured like s3fs, for others by obstore's own environment variables."""
    from obstore.store import from_url

    options = _s3_options(bucket) if scheme in S3 else {}
    return from_url(f"{scheme}://{bucket}", retry_config={"retry_timeout": RETRY_FOR}, **options)


def _s3_options(bucket: str) -> Record:
    """Endpoint, region and credentials that s3fs has found (profiles, roles, ``FSSPEC_S3_*`` ...)."""
    import fsspec
    from botocore.exceptions import ClientError
    from fsspec.asyn import sync

    fs = fsspec.filesystem("s3")
    region, endpoint = fs.s3.meta.region_name, fs.s3.meta.endpoint_url
    with contextlib.suppress(ClientError):  # may be forbidden; then the configured region has to be right
        headers = sync(fs.loop, fs.s3.head_bucket, Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
        region = headers.get("x-amz-bucket-region", region)

    def credentials() -> dict[str, object]:
        expires = {"expires_at": datetime.now(UTC) + CREDENTIALS_LAST}
        if fs.key:
            return {"access_key_id": fs.key, "secret_access_key": fs.secret, "token": fs.token, **expires}
        resolved = sync(fs.loop, fs.session.get_credentials)
        if resolved is None:
            raise OSError("no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
        keys = sync(fs.loop, resolved.get_frozen_credentials)
        return {"access_key_id": keys.access_key, "secret_access_key": keys.secret_key, "token": keys.token, **expires}

    options = {"region": region, "credential_provider": credentials, "client_options": {"allow_http": True}}
    return options if endpoint.endswith(".amazonaws.com") else {**options, "endpoint": endpoint}
