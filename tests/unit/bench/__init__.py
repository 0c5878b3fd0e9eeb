"""Tests of what `make bench` builds and reckons."""
