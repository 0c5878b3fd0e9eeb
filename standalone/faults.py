"""The one error of this package: a message a person can act on. Printed as it is, never with a stack trace; the exit code is 1."""


class StandaloneError(Exception):
    """Something the user can put right; the message says which and how."""


class UnreachableError(StandaloneError):
    """The cluster could not be asked: no kubectl, no such context, no answer."""


class StoppedError(StandaloneError):
    """The user stopped a verb on its way; the exit code is 130, as a shell has it."""
