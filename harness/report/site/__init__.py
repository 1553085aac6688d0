"""The static site of published results: plain pages that a browser opens from the file system."""

from harness.report.site.build import Built, build_site

__all__ = ["Built", "build_site"]
