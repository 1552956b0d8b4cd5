"""What pages are made of: templates, embedded libraries, compressed data.

Tables are DataTables (from the itables package), plots are plotly. Both are embedded compressed, like all that is
large, and unpacked by the browser.
"""

from __future__ import annotations

import base64
import gzip
import json
from importlib import metadata, resources
from typing import Any, NamedTuple


class Part(NamedTuple):
    """A piece of a page that the browser unpacks: base64 of gzip in an element with this id."""

    id: str
    data: str


def pack(id: str, content: bytes | str) -> Part:
    """Compress one piece; the same content gives the same bytes."""
    content = content.encode() if isinstance(content, str) else content
    return Part(id, base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode())


def plotly() -> Part:
    """Plotly, as a script."""
    from plotly.offline import get_plotlyjs

    return pack("plotly", get_plotlyjs())


def libraries() -> list[Part]:
    """DataTables as a module, and plotly."""
    tables = resources.files("itables") / "html" / "dt_bundle.js"
    return [pack("datatables", tables.read_bytes()), plotly()]


def render(template: str, scripts: tuple[str, ...], facts: dict[str, Any], **context: Any) -> str:
    """Fill a template of babyssa/pages/templates.

    Parameters
    ----------
    template : str
        File name.
    scripts : tuple of str
        File names of what runs in the page, in this order, as one module.
    facts : dict
        What the scripts read, as JSON.
    context
        What the template reads. Text is escaped.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("babyssa.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    read = (resources.files("babyssa.pages") / "templates").joinpath
    tables_css = (resources.files("itables") / "html" / "dt_bundle.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(
        context,
        # "<" would end the element early.
        facts=Markup(json.dumps(facts, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")),
        css=Markup(read("page.css").read_text(encoding="utf-8")),
        tables_css=Markup(tables_css),
        script=Markup("\n".join(read(name).read_text(encoding="utf-8") for name in scripts)),
        version=metadata.version("babyssa"),
        itables_version=metadata.version("itables"),
        plotly_version=metadata.version("plotly"),
    )
