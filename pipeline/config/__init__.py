"""The configuration: YAML in conf/, typed and checked here."""

from pathlib import Path

CONF = Path(__file__).resolve().parents[2] / "conf"
