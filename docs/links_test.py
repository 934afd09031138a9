"""Pages lead to each other: links have targets, each page is in the README's list, fields exist."""

import pathlib
import re
import unittest

README = pathlib.Path("README.md")
PAGES = sorted(pathlib.Path("docs").glob("*.md"))
HEADERS = sorted(pathlib.Path("allocator").glob("*.h"))


def links_of(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    return [target for target in targets if "://" not in target]


class Links(unittest.TestCase):
    maxDiff = None

    def test_links_have_targets(self):
        self.assertGreater(len(PAGES), 12)
        dead = [
            f"{page}: {target}"
            for page in [README, *PAGES]
            for target in links_of(page)
            if not (page.parent / target).exists()
        ]
        self.assertEqual(dead, [])

    def test_every_page_is_in_the_list_of_the_readme(self):
        section = README.read_text(encoding="utf-8").split("## To read")[1].split("\n## ")[0]
        self.assertEqual([str(page) for page in PAGES if f"]({page})" not in section], [])

    def test_every_picture_is_shown(self):
        shown = {target for page in [README, *PAGES] for target in links_of(page)}
        shown = {pathlib.PurePath(target).name for target in shown}
        pictures = [path.name for path in pathlib.Path("docs/images").iterdir()]
        self.assertGreater(len(pictures), 3)
        self.assertEqual([name for name in pictures if name not in shown], [])

    def test_fields_that_pages_name_exist(self):
        text = "\n".join(path.read_text(encoding="utf-8") for path in HEADERS)
        bodies = dict(re.findall(r"^struct (cca\w*) \{\n(.*?)^\}", text, re.M | re.S))
        named = set()
        for page in PAGES:
            found = re.findall(r"`(cca(?:__\w+)?)\.(\w+)", page.read_text(encoding="utf-8"))
            named |= {(struct, field) for struct, field in found if field not in ("c", "h")}
        self.assertGreater(len(named), 8)
        absent = [
            f"{struct}.{field}"
            for struct, field in sorted(named)
            if not re.search(rf"\b{field}\b", bodies.get(struct, ""))
        ]
        self.assertEqual(absent, [])


if __name__ == "__main__":
    unittest.main()
