"""Unit tests of standalone/."""
