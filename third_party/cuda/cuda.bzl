"""The CUDA Toolkit as repository @cuda: CUDA_HOME, then /usr/local/cuda.

Without a toolkit the repository still loads; building with --config=cuda then fails with one sentence."""

_BUILD = """
package(default_visibility = ["//visibility:public"])
cc_library(name = "headers", hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**"]), includes = ["include"])
cc_library(
    name = "runtime",
    deps = [":headers"],
    linkopts = ["-L{home}/lib64", "-L{home}/lib64/stubs", "-lcudart", "-lcuda", "-Wl,-rpath,{home}/lib64"],
)
cc_library(
    name = "cublas",
    deps = [":runtime"],
    linkopts = ["-lcublas", "-lcublasLt"],
)
"""

_MISSING = """
genrule(
    name = "missing",
    outs = ["missing.h"],
    cmd = "echo 'no CUDA Toolkit: set CUDA_HOME, or install it to /usr/local/cuda' >&2; exit 1",
)
cc_library(name = "headers", hdrs = [":missing"], visibility = ["//visibility:public"])
cc_library(name = "runtime", hdrs = [":missing"], visibility = ["//visibility:public"])
cc_library(name = "cublas", hdrs = [":missing"], visibility = ["//visibility:public"])
"""

def _cuda_repository(repository_ctx):
    home = repository_ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = repository_ctx.path(home + "/bin/nvcc").exists
    if found:
        repository_ctx.symlink(home + "/include", "include")
        repository_ctx.file("BUILD", _BUILD.format(home = home))
    else:
        repository_ctx.file("BUILD", _MISSING)
    repository_ctx.file("defs.bzl", "CUDA_HOME = %r\nCUDA_FOUND = %r\nNVCC = %r\n" % (home, found, home + "/bin/nvcc"))

cuda_repository = repository_rule(
    implementation = _cuda_repository,
    environ = ["CUDA_HOME"],
    local = True,
)
