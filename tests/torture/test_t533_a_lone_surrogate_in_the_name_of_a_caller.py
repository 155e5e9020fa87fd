"""T533: the name of a caller contains a lone surrogate. Audit log entries of this caller and of all others
are written; a token with such a name is refused."""

import time
from pathlib import Path

import pytest
from joserfc import jws

from dragoman.calls import audit
from dragoman.calls.audit import AuditEntry, AuditLog
from dragoman.gateway.jwt import JwtVerifier
from tests.torture.test_t77_fail_closed import Issuer, entry_of

pytestmark = pytest.mark.requirement("GWY-3")


def test_t533_the_audit_log_continues(home: Path):
    said = list[str]()
    log = AuditLog(home / "logs", said.append, "session")
    for caller in ("ada", "eve\ud83d", "bob"):
        log.write(AuditEntry(tool="tool", caller=caller), {"\ud83d": 1}, time.time())
    log.close()
    entries = [(each["caller"], each["arguments"]) for each in audit.read(home / "logs")]
    half = ["\\ud83d"]
    assert entries == [("ada", half), ("eve\\ud83d", half), ("bob", half)]
    assert said == []


@pytest.mark.parametrize(("subject", "is_valid"), [("eve", True), ("eve\\ud83d", False)])
async def test_t533_a_token_with_such_a_name_is_refused(subject: str, is_valid: bool):
    async with Issuer() as issuer:
        verify = JwtVerifier(entry_of(issuer), lambda: 1000.0)
        head, body, _ = issuer.token().split(".")
        claims = jws.extract_compact(f"{head}.{body}.".encode()).payload
        claims = claims.replace(b'"sub"', b'"before"').removesuffix(b"}") + b',"sub":"%b"}' % subject.encode()
        token = jws.serialize_compact({"alg": "ES256", "kid": "one"}, claims, issuer.keys[0])
        assert (await verify(token) is not None) == is_valid
