"""How tests go by ssh to a server that they have made themselves."""

SETTINGS = (
    "BatchMode=yes",
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
    "KexAlgorithms=curve25519-sha256",  # the default, which resists quantum computers, takes 70 ms of the processor more
)


def options(*more: str) -> list[str]:
    """The settings, and more of them, as words of ssh, scp and sftp."""
    return [word for setting in (*SETTINGS, *more) for word in ("-o", setting)]
