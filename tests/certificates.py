"""Certificates for tests: a private authority, and test web servers with certificates that it has signed."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.servers.web import Site

HOUR = datetime.timedelta(hours=1)
S = TypeVar("S", bound=Site)


class Authority:
    """Signs certificates and keeps them, with their keys, in a folder."""

    def __init__(self, folder: Path, name: str = "tests") -> None:
        self._folder = folder / name
        self._folder.mkdir()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        own = self._builder(self._name, self._key.public_key(), -HOUR, HOUR).add_extension(
            x509.BasicConstraints(True, None), critical=True
        )
        self.file = self._write("authority", own.sign(self._key, hashes.SHA256()))

    def issue(
        self,
        name: str,
        *,
        place: str = "127.0.0.1",
        begins: datetime.timedelta = -HOUR,
        ends: datetime.timedelta = HOUR,
    ) -> tuple[str, str]:
        """Files of a certificate for a place (an address or a name) and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_named(name), key.public_key(), begins, ends)
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(place)]), critical=False)
        key_file = self._folder / f"{name}.key"
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return self._write(name, builder.sign(self._key, hashes.SHA256())), str(key_file)

    def serving(
        self, certificate: tuple[str, str] | None = None, *, wants_ours: bool = False
    ) -> ssl.SSLContext:
        """What a server shows. `wants_ours`: it admits only whoever shows a certificate of this authority."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.file)
        context.load_cert_chain(*(certificate or self.issue("server")))
        if wants_ours:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _builder(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        begins: datetime.timedelta,
        ends: datetime.timedelta,
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
        )

    def _write(self, name: str, certificate: x509.Certificate) -> str:
        path = self._folder / f"{name}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return str(path)


def secured(server: S, context: ssl.SSLContext) -> S:
    """The server, not listening yet, made to speak TLS."""
    server._tls = context
    return server


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _general(place: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(place))
    except ValueError:
        return x509.DNSName(place)
