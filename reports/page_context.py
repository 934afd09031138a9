"""The last section of a page: machine, versions and settings of the measurement."""

from reports import style
from reports.markup import escape

# What the keys of a context are called on the page, in this order; other keys follow as they are.
CONTEXT_TEXT = {
    "tidemark_version": "Tidemark",
    "tidemark_commit": "commit",
    "date": "measured at",
    "compiler": "compiler",
    "cuda": "CUDA calls answered by",
    "device": "device",
    "capacity_bytes": "device memory",
    "topology": "machine",
    "host_name": "host",
    "pinned_cpu": "measuring thread on CPU",
    "load_1min": "load, 1 minute",
    "cpu_scaling_enabled": "CPU frequency scaling",
    "seed": "seed",
}
# Said by other keys already, or of no use to a reader.
HIDDEN = {
    "caches",
    "executable",
    "json_schema_version",
    "library_build_type",
    "load_avg",
    "mhz_per_cpu",
    "num_cpus",
    "tidemark_schema",
}


def first_context(results):
    return next(iter(results.contexts.values()))


def context_section(results):
    """What differs between the files is shown for each."""
    found = [key for context in results.contexts.values() for key in context]
    items = ""
    for key in dict.fromkeys(list(CONTEXT_TEXT) + found):
        values = context_values(results.contexts, key)
        if key in HIDDEN or not values:
            continue
        shown = next(iter(values))
        if len(values) > 1:
            shown = "; ".join(f"{value} ({', '.join(files)})" for value, files in values.items())
        items += f"<dt>{escape(CONTEXT_TEXT.get(key, key))}</dt><dd>{escape(shown)}</dd>\n"
    return (
        '<section id="context">\n<h2>How this was measured</h2>\n<p>Host times are measured. Memory'
        " sizes and device calls are counted from the allocator's own calls. Device times are"
        " <em>modelled</em>: what the device calls of a replay would cost by published figures,"
        " with the range that these leave; nothing waited for them."
        f"</p>\n<dl>\n{items}</dl>\n</section>\n"
    )


def context_values(contexts, key):
    """value as text -> files that have it"""
    values = {}
    for file, context in contexts.items():
        if key in context:
            value = str(context[key])
            if key == "capacity_bytes" and value.isdigit():
                value = style.format_bytes(int(value))
            values.setdefault(value, []).append(file)
    return values
