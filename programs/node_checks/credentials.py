"""Reads credentials of munge through its library: a process for each would cost five times as much."""

import ctypes


class CredentialError(ValueError):
    """The text is not a credential that this cluster's munged has made for us, or it is too old, or was used before."""


class Munge:
    """munge's library. Raises OSError where it is missing."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libmunge.so.2")
        self._library.munge_strerror.restype = ctypes.c_char_p
        self._free = ctypes.CDLL(None).free
        self._free.argtypes = [ctypes.c_void_p]

    def read(self, credential: bytes) -> tuple[int, bytes]:
        """The user who sealed the text, and the text. Raises CredentialError. Source: munge(3)."""
        text, length = ctypes.c_void_p(), ctypes.c_int()
        user, group = ctypes.c_uint32(), ctypes.c_uint32()
        code = self._library.munge_decode(
            ctypes.c_char_p(credential), None, ctypes.byref(text), ctypes.byref(length), ctypes.byref(user), ctypes.byref(group)
        )
        try:
            if code:
                raise CredentialError(self._library.munge_strerror(code).decode())
            return user.value, ctypes.string_at(text, length.value)
        finally:
            self._free(text)
