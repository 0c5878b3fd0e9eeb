"""Tests of the image build."""
