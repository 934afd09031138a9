"""Lists what a CUDA header of the simulator declares, for abi_table.c: one macro call a line.

    ABI_VALUE(cudaErrorInvalidValue)               an enumerator, or a macro with a value
    ABI_TYPE(struct cudaDeviceProp)                its size
    ABI_FIELD(struct cudaDeviceProp, name)         its offset and size
    ABI_NAME(cuMemGetInfo)                         what a macro makes of the name of a function

The header is our own and plainly written: a declaration a line. A line inside an enum or struct that is
not understood ends the program, so that nothing is left out in silence.
"""

import re
import sys

VALUE = r"#define (cuda\w+|CUDART_VERSION|CUDA_VERSION|CU_\w+|CUBLAS_VER\w+) .+"
NAMELESS = "typedef "  # an enum or a struct that gets its name at its end


def declarations(lines):
    aggregate = None
    waiting = []  # fields of such a struct
    inner = []  # fields of a struct without a name, which comes at its end
    union = False  # inside a union that has no name: its fields are the struct's
    for number, line in enumerate(lines, 1):
        line = line.split("//")[0].strip()
        if not line:
            continue
        if opened := re.fullmatch(r"(?:typedef )?(enum|struct|union) (\w+) \{", line):
            aggregate = f"{opened[1]} {opened[2]}"
            yield f"ABI_TYPE({aggregate})"
        elif aggregate is None and line in (NAMELESS + "enum {", NAMELESS + "struct {"):
            aggregate = NAMELESS
        elif aggregate is not None and line == "union {":
            union = True
        elif union and line == "};":
            union = False
        elif aggregate is not None and line == "struct {":
            inner = [None]
        elif aggregate is not None and (closed := re.fullmatch(r"\} ?(\w*);", line)):
            if inner:
                yield f"ABI_FIELD({aggregate}, {closed[1]})"
                for field in inner[1:]:
                    yield f"ABI_FIELD({aggregate}, {closed[1]}.{field})"
                inner = []
            else:
                aggregate = None
                if closed[1]:
                    yield f"ABI_TYPE({closed[1]})"
                for field in waiting:
                    yield f"ABI_FIELD({closed[1]}, {field})"
                waiting = []
        elif aggregate is None:
            if value := re.fullmatch(VALUE, line):
                yield f"ABI_VALUE({value[1]})"
            elif name := re.fullmatch(r"#define (cu[A-Z]\w+) \1_v\d+", line):
                yield f"ABI_NAME({name[1]})"
            elif name := re.fullmatch(r"typedef .*?(\w+)(\)\(.*\))?;", line):
                yield f"ABI_TYPE({name[1]})"
        elif member := re.fullmatch(r"(\w+) = (-?\d+|0x[0-9A-F]+),", line):
            yield f"ABI_VALUE({member[1]})"
        elif field := re.fullmatch(r"[\w ]+?[ *]+(\w+)(\[\d+\])?;", line):
            if inner:
                inner.append(field[1])
            elif aggregate == NAMELESS:
                waiting.append(field[1])
            else:
                yield f"ABI_FIELD({aggregate}, {field[1]})"
        else:
            sys.exit(f"line {number}: not understood: {line}")


for header in sys.argv[1:]:
    with open(header, encoding="utf-8") as file:
        for declaration in declarations(file):
            print(declaration)
