"""What people look at: a run folder as one web page. Reads files, calls no model."""

from groundrule.viewer.report import write_report

__all__ = ["write_report"]
