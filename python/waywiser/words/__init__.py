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

from typing import TYPE_CHECKING

from waywiser.words.lazy_names import lazy_root

if TYPE_CHECKING:
    from waywiser.words.atomic_write import new_file, remove_parts, replaced_file, try_to_replace
    from waywiser.words.closeable import Closeable
    from waywiser.words.cluster import (
        ClusterNode,
        ClusterPlace,
        ClusterPlan,
        FailedTest,
        FinishedTest,
        MessageMemory,
        NodeState,
        Phase,
        PlannedTest,
        Rail,
        RailDirection,
        RailTime,
    )
    from waywiser.words.collective import COLLECTIVE, EXCHANGE, UNEVEN_EXCHANGE, bus_factor
    from waywiser.words.errors import WaywiserError, WordError
    from waywiser.words.grouping import grouped
    from waywiser.words.host_list import (
        MOST_HOSTS,
        compress_hosts,
        expand_hosts,
        is_host_name,
        natural_key,
    )
    from waywiser.words.member_lines import MOST_REASONS, counted, series_of
    from waywiser.words.memory import MOST_TOGETHER, Memory, Place
    from waywiser.words.number_format import (
        RATE_BYTES,
        count,
        format_in_matrix,
        format_number,
        format_rate,
        format_relative,
        format_seconds,
        format_time,
        plural,
    )
    from waywiser.words.numbers import (
        MOST_BYTES,
        MOST_GPUS,
        MOST_INDEX,
        MOST_SIMULATED_GPUS,
        POSITIVE_COUNTS,
        Bounds,
        decimal_number,
        ranges_of,
        whole_number,
    )
    from waywiser.words.records import (
        BELOW_RESOLUTION,
        KILLED,
        LIMIT,
        MESSAGES,
        NOT_MEASURED,
        STANDING_COUNTERS,
        SUMMARY,
        VOID,
        BufferRecord,
        Failure,
        GpuHealth,
        GpuState,
        GpuTraffic,
        Health,
        LinkEvidence,
        Locality,
        Observation,
        Order,
        Process,
        Rule,
        Samples,
        Series,
        Unsupported,
        Visit,
        WhileOccupied,
        WhoCopies,
    )
    from waywiser.words.regular_file import (
        NotRegular,
        TooLarge,
        open_regular,
        read_regular,
        why_not_read,
    )
    from waywiser.words.same_wording import by_wording
    from waywiser.words.settings import format_settings, parse_settings
    from waywiser.words.sizes import (
        DecimalUnit,
        format_bytes,
        nearest_power_of_two,
        parse_bytes,
        size_text,
    )
    from waywiser.words.sizes_in_text import (
        bytes_of_each,
        size_of,
        with_sizes,
        with_units,
        without_sizes,
        without_units,
    )
    from waywiser.words.status import (
        SEVERITY_ORDER,
        STATUSES,
        Reason,
        Severity,
        Status,
        rank,
        severity_of,
    )
    from waywiser.words.temporary_folder import TemporaryFolder
    from waywiser.words.transfer import Layout, Path, Transfer, piece_between
    from waywiser.words.trusted_file import UntrustedPath, read_trusted
    from waywiser.words.user_cache import CacheError
    from waywiser.words.value import Value, canonical_json, json_bytes, json_text
    from waywiser.words.visible_text import (
        single_line,
        single_line_json,
        visible,
        with_short_quotes,
    )
    from waywiser.words.workload import Cache, Operation, Quantity, Stop, TimingMode, Workload
else:
    __getattr__ = lazy_root(__name__)
