"""Makes the wrappers that write the transcript, from the headers that declare the calls; and the
macros that tell where a call stands.

    transcript_wrappers.py names HEADER...   a header: the names under which the simulator's own
                                             functions are compiled
    transcript_wrappers.py calls HEADER...   a C file: a function for each call, which writes
                                             arguments and result if a transcript is on
    transcript_wrappers.py sites HEADER...   a header: each call, and each call of the control that
                                             is about memory, as a macro that tells file and line

A call is a declaration of a function that returns cudaError_t, CUresult or cublasStatus_t. The headers are our own:
a declaration ends with a semicolon, a parameter has a name.
"""

import re
import sys

STREAMS = {"cudaStream_t", "CUstream"}
EVENTS = {"cudaEvent_t", "CUevent"}
HANDLES = {
    "cudaGraph_t": "graph",
    "cudaGraphExec_t": "exec",
    "cudaGraphNode_t": "node",
    "cudaUserObject_t": "object",
    "cublasHandle_t": "blas",
    "cublasLtHandle_t": "blas",
}
# Things of the host's, told by name only.
DESCRIPTORS = re.compile(r"cublasLt\w+_t|.*\bcublasLt\w+_t \*")
ADDRESSES = {"void *", "const void *", "CUdeviceptr"}
# What a call stores, by the type of the pointer to it.
STORED = {
    "void **": ("address", "(uint64_t)(uintptr_t)"),
    "CUdeviceptr *": ("address", "(uint64_t)"),
    "cudaStream_t *": ("stream", ""),
    "CUstream *": ("stream", ""),
    "cudaEvent_t *": ("event", ""),
    "CUevent *": ("event", ""),
    **{f"{kind} *": (form, "") for kind, form in HANDLES.items()},
    "enum cudaStreamCaptureStatus *": ("number", "(long long)"),
    "enum cudaGraphNodeType *": ("number", "(long long)"),
    "float *": ("real", ""),
    "int *": ("number", "(long long)"),
    "unsigned int *": ("number", "(long long)"),
    "size_t *": ("number", "(long long)"),
    "unsigned long long *": ("number", "(long long)"),
    "CUdevice *": ("number", "(long long)"),
    "CUmemGenericAllocationHandle *": ("number", "(long long)"),
}
FUNCTIONS = {"cudaHostFn_t", "cudaStreamCallback_t"}
# Pointers to several: their number is an argument of its own.
ARRAYS = re.compile(r"(const )?cudaGraph(Node_t|EdgeData) \*+")
# When a call stores more than its first result.
STORES = {"cudaStreamGetCaptureInfo": "*status == cudaStreamCaptureStatusActive"}
# Of the control, what a report of the race checker can name.
SITES = r"\b(bool|uint64_t|void) (sim_block_\w+|sim_host_access)\(([^;{]*)\) ?;"


def text_of(header):
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"//[^\n]*", "", file.read())
    aliases = dict(re.findall(r"#define (cu\w+) (\1_v\d+)\n", text))
    text = re.sub(r"#[^\n]*", "", text)
    text = re.sub(r"TIDEMARK_SIMULATOR_DEFAULT\(\w+\)|BASE_MUST_USE|CUDAAPI", "", text)
    text = re.sub(r"\b\w+\b", lambda match: aliases.get(match[0], match[0]), text)
    return re.sub(r"\s+", " ", text)


def parameters_of(text):
    """(type, name) of each; a pointer to a function has the type "function"."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text + ","):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    for part in parts:
        if part in ("", "void"):
            continue
        if function := re.fullmatch(r".*\(\*(\w+)\)\(.*\)", part):
            yield "function", function[1], part
            continue
        kind, stars, name = re.fullmatch(r"(.*?) ?(\**)(\w+)", part).groups()
        yield (f"{kind} {stars}" if stars else kind), name, part


def calls_of(headers, form=r"\b(cudaError_t|CUresult|cublasStatus_t) (\w+)\(([^;{]*)\) ?;"):
    for header in headers:
        for result, name, parameters in re.findall(form, text_of(header)):
            yield result, name, list(parameters_of(parameters))


def is_array(kind, name):
    return ARRAYS.fullmatch(kind) is not None and name != "node"


def is_structure(kind):
    return re.fullmatch(r"(const )?(struct \w+|cudaGraph\w+(Params|Info)) \*", kind) is not None


def argument_line(kind, name):
    if kind in HANDLES:
        return f'sim__value_{HANDLES[kind]}(&written.arguments, "{name}", {name});'
    if (
        is_array(kind, name)
        or kind == "function"
        or kind in FUNCTIONS
        or kind in STORED
        or DESCRIPTORS.fullmatch(kind)
    ):
        return f'sim__value_name(&written.arguments, "{name}");'
    if kind in STREAMS:
        return f'sim__value_stream(&written.arguments, "{name}", {name});'
    if kind in EVENTS:
        return f'sim__value_event(&written.arguments, "{name}", {name});'
    if kind == "const char *":
        return f'sim__value_text(&written.arguments, "{name}", {name});'
    if kind == "const struct sim_kernel *":
        return f'sim__value_kernel(&written.arguments, "{name}", {name});'
    if kind == "enum cudaMemcpyKind":
        return f'sim__value_kind(&written.arguments, "{name}", {name});'
    if kind == "struct cudaMemLocation":
        return f'sim__value_number(&written.arguments, "{name}.id", {name}.id);'
    if is_structure(kind):
        return f'sim__value_name(&written.arguments, "{name}");'
    if kind in ADDRESSES or kind.endswith("*"):
        return f'sim__value_address(&written.arguments, "{name}", (uint64_t)(uintptr_t){name});'
    return f'sim__value_number(&written.arguments, "{name}", (long long){name});'


def wrapper(result, name, parameters):
    declared = ", ".join(part for _, _, part in parameters) or "void"
    passed = ", ".join(parameter for _, parameter, _ in parameters)
    print(f"\n{result} sim__call_{name}({declared});")
    print(f"static __attribute__((noinline, cold)) {result} written_{name}({declared}) {{")
    print("    struct sim__transcript_call written;")
    print(f'    sim__transcript_begin(&written, "{name}");')
    for kind, parameter, _ in parameters:
        print(f"    {argument_line(kind, parameter)}")
    print("    sim__transcript_go(&written);")
    print(f"    const {result} answer = sim__call_{name}({passed});")
    print("    sim__transcript_returned(&written, (int)answer);")
    condition = "answer == 0"
    for kind, parameter, _ in parameters:
        if kind in STORED and not is_array(kind, parameter):
            form, cast = STORED[kind]
            print(f"    if ({condition} && {parameter} != NULL)")
            if name in STORES:
                condition = f"answer == 0 && {STORES[name]}"
            print(f'        sim__value_{form}(&written.outputs, "*{parameter}", {cast}*{parameter});')
    print("    sim__transcript_end(&written);\n    return answer;\n}")
    print(f"{result} {name}({declared}) {{")
    print(f"    return sim__transcript_is_off() ? sim__call_{name}({passed})")
    print(f"                                    : written_{name}({passed});\n}}")


# Arguments come before the function's body: a call within them has told its own place and ended.
def site(result, name, parameters):
    declared = "".join(f", {part}" for _, _, part in parameters)
    passed = ", ".join(parameter for _, parameter, _ in parameters)
    print(f"\nstatic inline {result} sim_at_{name}(const char *sim_file, int sim_line{declared}) {{")
    print("    sim_call_site(sim_file, sim_line);")
    if result == "void":
        print(f"    {name}({passed});")
        print("    sim_call_site(NULL, 0);\n}")
    else:
        print(f"    {result} sim_answer = {name}({passed});")
        print("    sim_call_site(NULL, 0);\n    return sim_answer;\n}")
    # A name that is a macro already stands for another one of these.
    print(f"#ifndef {name}")
    if parameters:
        print(f"#define {name}(...) sim_at_{name}(__FILE__, __LINE__, __VA_ARGS__)")
    else:
        print(f"#define {name}() sim_at_{name}(__FILE__, __LINE__)")
    print("#endif")


def sites(headers):
    print("// What SIM_CALL_SITES makes of the calls; made from their declarations.")
    print("#ifndef TIDEMARK_SIMULATOR_CALL_SITES_H\n#define TIDEMARK_SIMULATOR_CALL_SITES_H\n")
    for header in headers:
        if "/include/" in header:
            print(f"#include <{header.rsplit('/', 1)[1]}>")
    print('#include "simulator/sim.h"\n#include "simulator/sim_race.h"\n\n#include <stddef.h>')
    for call in [*calls_of(headers), *calls_of(headers, SITES)]:
        site(*call)
    print("\n#endif")


def main():
    form, headers = sys.argv[1], sys.argv[2:]
    calls = list(calls_of(headers))
    if form == "names":
        for _, name, _ in calls:
            print(f"#define {name} sim__call_{name}")
        return
    if form == "sites":
        sites(headers)
        return
    print('#include "simulator/transcript.h"')
    for header in headers:
        if "/include/" in header:
            print(f"#include <{header.rsplit('/', 1)[1]}>")
    for call in calls:
        wrapper(*call)
    if any(name.startswith("cublas") for _, name, _ in calls):
        return  # nobody asks for their addresses
    print("\nstatic const struct sim__wrapper wrappers[] = {")
    for _, name, _ in calls:
        print(f"    {{(void (*)(void))sim__call_{name}, (void (*)(void)){name}}},")
    print("};\n__attribute__((constructor)) static void wrappers_tell(void) {")
    print("    sim__transcript_wrappers_are(wrappers, sizeof wrappers / sizeof wrappers[0]);\n}")


main()
