"""A token server as registries use it: RS256 tokens that the real docker-registry verifies.

Source: https://distribution.github.io/distribution/spec/auth/jwt/
"""

import base64
import datetime
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

SERVICE = "test-registry"
USER, PASSWORD = "someone", "right"


@contextmanager
def token_server(folder: Path, public: frozenset[str]) -> Iterator[str]:
    """Grant pulls of ``public`` repositories to everybody, and everything to the one user.

    A wrong login is refused with 401, whatever it asks for.

    Args:
        folder: Where its certificate goes.
        public: Repositories that anybody may pull.

    Yields:
        The auth section of a docker-registry that trusts it, as YAML.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    certificate = _certificate(key)
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / "token.pem"
    bundle.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    der = certificate.public_bytes(serialization.Encoding.DER)
    header = {"x5c": [base64.b64encode(der).decode()]}
    login = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown = self.headers.get("Authorization")
            if shown not in (None, login):
                self._answer(401, {"details": "incorrect username or password"})
                return
            query = parse_qs(urlsplit(self.path).query)
            access = [_access(scope, shown is not None, public) for scope in query.get("scope", [])]
            now = int(time.time())
            claims = {"iss": "tests", "aud": SERVICE, "sub": "", "jti": str(now), "access": access}
            claims |= {"iat": now - 5, "nbf": now - 5, "exp": now + 300}
            token = jwt.encode(claims, key, algorithm="RS256", headers=header)
            self._answer(200, {"token": token, "expires_in": 300})

        def _answer(self, status: int, tree: dict) -> None:
            body = json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        realm = f"http://127.0.0.1:{server.server_address[1]}/token"
        yield (
            f"auth: {{token: {{realm: '{realm}', service: {SERVICE}, issuer: tests, "
            f"rootcertbundle: '{bundle}'}}}}\n"
        )
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _access(scope: str, logged_in: bool, public: frozenset[str]) -> dict:
    """Grant what was asked for, or nothing of it; a token is given all the same."""
    kind, name, actions = scope.split(":")
    allowed = logged_in or (name in public and actions == "pull")
    return {"type": kind, "name": name, "actions": actions.split(",") if allowed else []}


def _certificate(key: rsa.RSAPrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
