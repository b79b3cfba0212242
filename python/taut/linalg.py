"""Matrices."""
