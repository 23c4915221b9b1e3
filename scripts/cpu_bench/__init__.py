"""Sections of scripts/bench_cpu.py."""
