"""Graphs of superpixels, and what finds their best labellings: minimum cuts, message passing, alpha-expansion."""
