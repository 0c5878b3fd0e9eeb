"""Tells webhooks and mail addresses of ended jobs and of nodes that go out of service or come back. Entry: run.py."""
