"""Theoretical and empirical receptive fields of transformer position encodings."""
