"""A bridge to MPI whose messages arrive with a wrong byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

from waywiser.measure.ranks.mpi_library import SOURCES

WRONG = """
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
static int wrong_isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                       MPI_Comm comm, MPI_Request* request) {
    static char* copies[256];
    static unsigned sent;
    char** copy = &copies[sent++ % 256];
    *copy = realloc(*copy, (size_t)count + 1);
    memcpy(*copy, data, (size_t)count);
    if (count > 1000) (*copy)[count / 2] ^= 1;
    return MPI_Isend(*copy, count, type, to, tag, comm, request);
}
#define MPI_Isend wrong_isend
"""


def wrong_bridge(mpicc: str, folder: Path) -> str:
    """The path of the compiled bridge."""
    header, bridge = folder / "wrong.h", folder / "wrong.so"
    header.write_text(WRONG)
    source = str(SOURCES / "bridge.c")
    options = ["-O2", "-fPIC", "-shared", "-include", str(header), "-o", str(bridge), source]
    subprocess.run([mpicc, *options], check=True)
    return str(bridge)
