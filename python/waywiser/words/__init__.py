"""The vocabulary as frozen values, which every package uses; it uses none.

What may happen here: texts and JSON become values, and values become texts. Small helpers for
numbers and files are here too.

Types to know: `Memory` at a `Place`, `Transfer` over a `Path`, `Workload`; `Status`, how bad
something is, and its `Reason`. `words.records` has what workers exchange and profiles store.

Never here: a machine, a file format, a number that was measured. docs/glossary.md defines the
words.

Every value has one canonical text (for people and patterns) and one canonical JSON form (for
files, processes and identities). The grammar of the text:

    place      numa:0 | gpu:1 | file:/data/x | rank:3 | gpu:0-7 (several, of a collective)
    memory     KIND[VARIANT]@PLACE            pageable[pages=huge]@numa:0
    path       MEMORY -> MEMORY by EXECUTOR   pinned@numa:0 -> device@gpu:0 by copy-engine
    layout     KIND[SETTINGS]                 list[piece=28672] | box[height=64,width=512]
    transfer   PATH[PARAMETERS] of BYTES      ... by copy-engine[api=sync] of 1048576
               PATH[...] as LAYOUT of BYTES   ... by batch as list[piece=28672] of 1048576
    operation  NAME[PARAMETERS]@PLACE         malloc[bytes=65536]@numa:0
    workload   TRANSFER; TRANSFER (CACHE)     ... (flushed)
               TRANSFER; TRANSFER (shared)    ... one buffer for each memory that is named twice

Variants and parameters are written ``[key=value,key=value]`` with keys sorted; all values are
text, and a value that equals its default is not written. A workload's identity is a hash of its
canonical JSON, so that new kinds of workload need no new columns.
"""

from waywiser.words.errors import WaywiserError, WordError
from waywiser.words.grouping import grouped
from waywiser.words.memory import Memory, Place
from waywiser.words.numbers import ranges_of
from waywiser.words.settings import format_settings, parse_settings
from waywiser.words.sizes import DecimalUnit, format_bytes, parse_bytes
from waywiser.words.status import STATUSES, Reason, Severity, Status, rank
from waywiser.words.transfer import Layout, Path, Transfer
from waywiser.words.value import Value, canonical_json, json_text
from waywiser.words.workload import Cache, Operation, Quantity, Stop, TimingMode, Workload
