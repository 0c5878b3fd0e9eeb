"""A real LDAP directory for tests: Debian's slapd in a network namespace, with TLS by an authority of its own, and words to change it."""

import datetime
import ipaddress
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from local import packages
from tests.support.patience import patience
from tests.support.slurm.image_pods import PodError, wait_for

BASE = "dc=example,dc=test"
PEOPLE = f"ou=people,{BASE}"
GROUPS = f"ou=groups,{BASE}"
READER = f"cn=reader,{BASE}"
PASSWORD = "s3cret: with a blank"
_ADMIN = f"cn=admin,{BASE}"
_ADMIN_PASSWORD = "admin"

Value = str | int | Sequence[str | int]
"""Of an attribute: one value, or several."""

_CONF = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey' EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY MAY ( sshPublicKey $ uid ) )
objectclass ( 1.3.6.1.4.1.99999.1 NAME 'bisGroup' SUP top AUXILIARY MUST gidNumber )
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/pid
TLSCACertificateFile {folder}/ca.crt
TLSCertificateFile {folder}/server.crt
TLSCertificateKeyFile {folder}/server.key
database mdb
suffix "{base}"
rootdn "{admin}"
rootpw {admin_password}
directory {folder}/data
maxsize 1073741824
dbnosync
# More than 500 entries are given in pages only.
limits * size.soft=500 size.hard=500 size.prtotal=unlimited
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{reader}" read by anonymous auth by * none
"""


@dataclass
class DirectoryServer:
    """slapd, started and stopped by the test."""

    folder: Path
    """Its own folder."""
    namespace: str
    """The network namespace that it listens in."""
    address: str
    """An address there."""
    name: str
    """The host name in its certificate; clients find it in their hosts file."""
    port: int = 6360
    process: subprocess.Popen[bytes] | None = None
    _log: Path = field(init=False)

    @property
    def uri(self) -> str:
        """Where clients reach it."""
        return f"ldaps://{self.name}:{self.port}"

    @property
    def plain_uri(self) -> str:
        """The same server, where TLS begins with StartTLS."""
        return f"ldap://{self.name}:{self.port - 1}"

    def prepare(self) -> None:
        """Installs Debian's packages where they are missing, makes certificates, and an empty tree."""
        if not Path("/usr/sbin/slapd").exists() or not Path("/usr/bin/ldapadd").exists():
            packages.install(["slapd", "ldap-utils"])
        (self.folder / "data").mkdir(parents=True)
        self._log = self.folder / "log"
        make_certificates(self.folder, self.name, self.address)
        values = {"folder": self.folder, "base": BASE, "admin": _ADMIN, "admin_password": _ADMIN_PASSWORD, "reader": READER}
        (self.folder / "slapd.conf").write_text(_CONF.format(**values))
        self.start()
        self.add(BASE, ["dcObject", "organization"], o="example")
        for unit in (PEOPLE, GROUPS):
            self.add(unit, ["organizationalUnit"])
        self.add(READER, ["organizationalRole", "simpleSecurityObject"], userPassword=PASSWORD)

    def start(self) -> None:
        """Starts slapd, and waits until it answers."""
        urls = f"ldaps://{self.address}:{self.port}/ ldap://{self.address}:{self.port - 1}/"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.namespace}", "slapd", "-f", str(self.folder / "slapd.conf"), "-h", urls, "-d", "0"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_for("slapd", lambda: self._client("ldapwhoami") or True)

    def kill(self) -> None:
        """Ends slapd without a warning."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10 * patience())
            self.process = None

    def add(self, dn: str, classes: Sequence[str], **attributes: Value) -> None:
        """Adds an entry."""
        self._client("ldapadd", stdin=ldif(dn, {"objectClass": classes, **attributes}))

    def add_user(self, name: str, uid: int, *keys: str, **more: Value) -> None:
        """Adds a user with the usual attributes."""
        self._client("ldapadd", stdin=user_ldif(name, uid, *keys, **more))

    def add_users(self, names: Sequence[str], first_uid: int, *keys: str) -> None:
        """Adds many users at once."""
        self._client("ldapadd", stdin="".join(user_ldif(name, first_uid + at, *keys) for at, name in enumerate(names)))

    def modify(self, dn: str, text: str) -> None:
        """Changes an entry; `text` is what follows `changetype: modify`."""
        self._client("ldapmodify", stdin=f"dn: {dn}\nchangetype: modify\n{text}\n")

    def delete(self, *dns: str) -> None:
        """Removes entries."""
        self._client("ldapdelete", stdin="".join(f"{dn}\n" for dn in dns))

    def _client(self, program: str, stdin: str = "") -> str:
        command = [program, "-x", "-H", f"ldaps://{self.address}:{self.port}", "-D", _ADMIN, "-w", _ADMIN_PASSWORD]
        done = subprocess.run(
            ["nsenter", f"--net=/run/netns/{self.namespace}", *command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60 * patience(),
            check=False,
            env={"LDAPTLS_CACERT": str(self.folder / "ca.crt"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
        if done.returncode:
            raise PodError(f"{program} gave {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def user_ldif(name: str, uid: int, *keys: str, **more: Value) -> str:
    """A user with the usual attributes."""
    classes = ["account", "posixAccount", "ldapPublicKey"]
    ids: dict[str, Value] = {"cn": name.title(), "uid": name, "uidNumber": uid, "gidNumber": uid, "homeDirectory": f"/users/{name}"}
    return ldif(f"uid={name},{PEOPLE}", {"objectClass": classes, **ids, "loginShell": "/bin/bash", "sshPublicKey": keys, **more})


def ldif(dn: str, attributes: Mapping[str, Value]) -> str:
    """One entry as LDIF."""
    lines = [f"dn: {dn}"]
    for name, value in attributes.items():
        lines += [f"{name}: {each}" for each in ([value] if isinstance(value, str | int) else value)]
    return "\n".join([*lines, "", ""])


def make_certificates(folder: Path, name: str, address: str) -> None:
    """An authority (ca.crt), another that signed nothing (other-ca.crt), and a server's certificate for a name and an address."""
    ca, ca_key = _authority("test authority")
    other, _ = _authority("other authority")
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]
    server = (
        _builder(name, ca.subject, key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    for file, certificate in (("ca.crt", ca), ("other-ca.crt", other), ("server.crt", server)):
        (folder / file).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "server.key").write_bytes(private)


def _authority(name: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(name, own, key).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, hashes.SHA256()), key


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
