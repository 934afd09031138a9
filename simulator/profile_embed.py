"""Makes a C table of text files: name (without folder and ending) and text of each."""

import pathlib
import sys

print('#include "simulator/profile.h"\n\nconst struct sim__profile_text sim__profile_texts[] = {')
for path in sorted(map(pathlib.Path, sys.argv[1:])):
    print(f'    {{"{path.stem}",')
    for line in path.read_text(encoding="utf-8").splitlines():
        escaped = line.replace("\\", "\\\\").replace('"', '\\"')
        print(f'     "{escaped}\\n"')
    print("    },")
print("};\nconst size_t sim__profile_text_count =")
print("    sizeof sim__profile_texts / sizeof sim__profile_texts[0];")
