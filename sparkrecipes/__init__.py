"""Measured LLM serving recipes for one NVIDIA DGX Spark: pick, check, install, prove."""

__version__ = "0.1.0"
