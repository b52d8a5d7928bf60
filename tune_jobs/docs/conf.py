"""The documentation as a site: `make docs`.

Sphinx reads pages where they stand, beside the code that they are about. The reference is written
from the program itself, into build/, before Sphinx looks for pages.
"""

from tune_jobs.docs.reference import REPOSITORY, write_reference

project = "metasched"
author = "the metasched authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "tune_jobs/docs/index"
include_patterns = ["**/*.md", "*.md"]
exclude_patterns = [".*/**", "build/docs", "runs", "**/*.egg-info"]
html_theme = "furo"
html_title = "metasched"

myst_heading_anchors = 3  # as on GitHub
myst_enable_extensions: list[str] = []
highlight_language = "none"
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True}

write_reference(REPOSITORY / "build" / "reference")
