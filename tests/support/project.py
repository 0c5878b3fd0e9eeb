"""The project's folder, and users' keys that do not depend on the machine."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g alice@example.com"
KEYS = tuple(f"cluster.login.users[{at}].{said}" for at in range(2) for said in ("sshKeyFiles=[]", f'sshKeys=["{KEY}"]'))
"""Instead of those in files, of the first users."""
