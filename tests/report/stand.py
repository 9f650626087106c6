"""Where the report's scripts lie, and a reader of what they write."""

import sys
from html.parser import HTMLParser
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SCRIPT = SOURCE / "scripts" / "report"
sys.path.insert(0, str(SCRIPT))


class Reader(HTMLParser):
    """Tags that are open and never closed, all addresses, all texts, and the rows of tables."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.addresses, self.texts, self.rows = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)
        if "tr" in self.open and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data
