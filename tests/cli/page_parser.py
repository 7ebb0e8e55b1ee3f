# SPDX-License-Identifier: Apache-2.0
"""What a browser would make of a page that --report wrote."""
import collections
import html.parser
import json


class PageParser(html.parser.HTMLParser):
    """The page's elements, its embedded data, and where it refers to."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements = collections.Counter()
        self.scripts = []
        self.references = []
        self.ids = []
        self.handlers = []
        self.title = ""
        self.open = None

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        self.open = tag
        if tag == "script":
            self.scripts.append("")
        for name, value in attrs:
            if name in ("src", "href"):
                self.references.append(value)
            if name == "id":
                self.ids.append(value)
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, text):
        if self.open == "script":
            self.scripts[-1] += text
        if self.open == "title":
            self.title += text


def parse(path):
    """The parsed page of a file, and its data: the first of its three scripts."""
    page = PageParser()
    page.feed(path.read_text(encoding="utf-8"))
    assert len(page.scripts) == 3, len(page.scripts)
    return page, json.loads(page.scripts[0])
