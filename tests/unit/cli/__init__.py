"""Unit tests of cli/."""
