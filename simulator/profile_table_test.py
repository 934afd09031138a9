"""docs/cost-model.md shows the figures that the profiles have, and they have one for each kind of call."""

import pathlib
import re
import unittest

from simulator import profile_table

PROFILES = sorted(pathlib.Path("simulator/profiles").glob("*.profile"))
BEGIN, END = "<!-- figures of simulator/profiles -->", "<!-- end of figures -->"


class ProfileTable(unittest.TestCase):
    maxDiff = None

    def test_the_page_has_the_figures_of_the_profiles(self):
        page = pathlib.Path("docs/cost-model.md").read_text(encoding="utf-8")
        shown = page.split(BEGIN)[1].split(END)[0].strip()
        self.assertEqual(shown, profile_table.table(PROFILES))

    def test_each_kind_of_call_has_a_figure(self):
        source = pathlib.Path("simulator/call.c").read_text(encoding="utf-8")
        kinds = re.findall(r'\[SIM_CALL_\w+\] = "(\w+)"', source)
        self.assertGreater(len(kinds), 15)
        for path in PROFILES:
            figures = profile_table.read(path)
            missing = [kind for kind in kinds if f"call.{kind}" not in figures]
            self.assertEqual(missing, [], path.name)

    def test_profiles_have_the_same_figures(self):
        first = profile_table.read(PROFILES[0])
        self.assertGreater(len(PROFILES), 1)
        for path in PROFILES[1:]:
            self.assertEqual(list(profile_table.read(path)), list(first), path.name)


if __name__ == "__main__":
    unittest.main()
