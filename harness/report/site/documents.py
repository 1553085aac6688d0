"""Pages of words: Markdown to HTML, with links that lead somewhere in the site."""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from harness.report.site.reading import Document
from harness.report.views import clean


@dataclass(frozen=True)
class Section:
    """A heading of a page, its anchor, and the words below it."""

    title: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Rendered:
    """A page: its title (the first heading of the first rank, or the file's name), its HTML, and its sections."""

    document: Document
    title: str
    body: Markup
    sections: list[Section]


Place = Callable[[str], str | None]
"""From a file of the results to its address in the site, relative to `results/` there; None where the site has none."""


def render_document(document: Document, place: Place) -> Rendered:
    """No HTML in the text is let through, no picture is loaded, and a link out of the results becomes words."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(clean(document.path.read_text(encoding="utf-8")))
    title = _take_title(tokens) or document.name.rsplit("/", 1)[-1].removesuffix(".md").replace("_", " ")
    sections = _sections(tokens, title)
    for token in tokens:
        if token.children:
            token.children = _linked(token.children, document, place)
    body = str(parser.renderer.render(_boxed(tokens), parser.options, {}))
    return Rendered(document, title, Markup(body), sections)  # noqa: S704  (the parser has escaped all of it)


def _take_title(tokens: list[Token]) -> str | None:
    """The title, taken out of the text."""
    if len(tokens) > 2 and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        title = _words(tokens[1])
        del tokens[:3]
        return title
    return None


def _words(inline: Token) -> str:
    said = [child.content if child.type in {"text", "code_inline"} else " " for child in inline.children or []]
    return " ".join("".join(said).split())


def _sections(tokens: list[Token], title: str) -> list[Section]:
    """Headings get an anchor; the words below each are what a search looks through."""
    found = [Section(title, "", "")]
    heading = False
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", f"part-{len(found)}")
            found.append(Section(_words(tokens[at + 1]), f"part-{len(found)}", ""))
        elif token.type in {"inline", "fence", "code_block"} and not heading:
            words = _words(token) if token.type == "inline" else token.content
            found[-1] = replace(found[-1], text=f"{found[-1].text} {words}".strip())
        heading = token.type == "heading_open"
    return found


def _linked(children: list[Token], document: Document, place: Place) -> list[Token]:
    """The same inline tokens with every link mended, or turned into words with the place of what it names. Links do not
    lie within links."""
    kept: list[Token] = []
    dead: tuple[int, str] | None = None
    for token in children:
        href = str(token.attrs.get("href", ""))
        if token.type == "link_open" and (target := _target(href, document, place)) is None:
            dead = (len(kept), _outside(href, document))
        elif token.type == "link_close" and dead:
            begin, where = dead
            if where and where != "".join(one.content for one in kept[begin:]):
                kept.append(Token("text", "", 0, content=f" ({where})"))
            dead = None
        else:
            if token.type == "link_open":
                token.attrSet("href", str(target))
            kept.append(token)
    return kept


def _target(href: str, document: Document, place: Place) -> str | None:
    """An address of the web as it is; a file of the results as the site has it."""
    if "://" in href or href.startswith("mailto:"):
        return href
    if href.startswith("#"):
        return None
    path, mark, anchor = href.partition("#")
    here = posixpath.dirname(document.name)
    found = place(posixpath.normpath(posixpath.join(here, unquote(path))))
    return None if found is None else quote(posixpath.relpath(found, here or ".")) + mark + anchor


def _outside(href: str, document: Document) -> str:
    """Where a file lies that the site does not have, seen from the folder that holds the results."""
    path = href.partition("#")[0]
    return posixpath.normpath(posixpath.join("results", posixpath.dirname(document.name), path)) if path else ""


def _boxed(tokens: list[Token]) -> list[Token]:
    """Each table within a box of its own, which scrolls where the screen is narrow."""
    found: list[Token] = []
    for token in tokens:
        if token.type == "table_open":
            box = Token("box_open", "div", 1, block=True)
            box.attrs = {"class": "box", "tabindex": "0", "role": "region", "aria-label": "table"}
            found += [box, token]
        elif token.type == "table_close":
            found += [token, Token("box_close", "div", -1, block=True)]
        else:
            found.append(token)
    return found
