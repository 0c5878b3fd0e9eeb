"""Unit tests of engine/."""
