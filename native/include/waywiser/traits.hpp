// Properties of executors and memory kinds that planning, statistics and reports use, so that no
// code depends on a name. All are optional.
//
// Values without pointers: a caller owns its copies, and threads may read them at once. Sizes are
// in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/words.hpp"

namespace waywiser {

// A class of paths: within the host, to or from a GPU, of unified memory, of files.
enum class PathClass { none, host, gpu, unified, file };

// Executors of one family use the same mechanism.
enum class Family { other, runtime_copy, kernel, cpu, unified_memory, file, staged };

// The links that bytes cross: those of the shortest route; those through the host, even between
// peer GPUs; or also those of the GPUs that the parameter `relays` names. Between ranks, the
// processes of a launch, each of which has one end, whatever the library of messages uses.
enum class Route { shortest, through_host, over_relays, between_ranks };

// The resources of an executor that other work on the machine shares, without those that the memory
// of a path adds (the driver stages pageable memory with CPUs).
struct Shares {
    bool links = true;
    bool host_memory = true;
    bool cpus = true;
    bool file_system = true;
};

// Another executor that a program may use instead on the same path. Reports compare the two.
struct Alternative {
    std::string executor;    // empty for none
    std::string question;    // title of a table
    std::string own;         // text of a cell if this executor is faster
    std::string other;       // text of a cell if the other executor is faster
    bool host_only = false;  // only for paths with host memory at an end
};

// A call with which a program makes a transfer like that of an executor. Reports show it.
struct Call {
    std::string text;   // "cudaMemcpyAsync"
    Settings settings;  // only for transfers with these settings, which are not shown
    // Only for transfers between places of these kinds: of the source and of the destination.
    std::optional<std::pair<Place::Kind, Place::Kind>> between;
    bool two_places = false;  // not for transfers within one place
    // Defaults that are shown too. They must be the same on all paths and machines.
    Settings defaults;
};

// What the transfer library does by the method of an executor.
struct LibraryUse {
    bool contiguous = false;            // copies of one range
    bool lists = false;                 // copies of many pieces
    std::vector<std::string> settings;  // parameters that a policy may set
};

struct Traits {
    // Smaller contiguous transfers are dominated by the executor's own overhead and are measured
    // only on request.
    std::size_t least_bytes = 0;
    // The transfer library never uses it: by default only a full survey measures it.
    bool survey_only = false;
    // Its best settings need a search: by default only a full survey varies them.
    bool settings_on_request = false;
    // It is measured only for comparison with another executor of its class.
    bool comparison = false;
    // Concurrent transfers of all GPUs are measured with it, not only with the reference.
    bool in_sets = false;
    // It moves bytes among a memory at several GPUs, too.
    bool among_several = false;
    // It moves bytes among the memories of several ranks.
    bool among_ranks = false;
    // What it loads into its process, which changes other transfers there: it is measured in
    // processes of its own, together with what is measured beside it. Empty for nothing.
    std::string loads;
    // It is a load: measured alone at one size and beside copies, which shows what these take from
    // it. It is no method of a copy.
    bool bystander = false;
    // The runtime chooses whether copy engines or multiprocessors do the work that it puts on its
    // lanes. A survey observes which.
    bool either_unit = false;

    Family family = Family::other;
    Shares shares;
    Route route = Route::shortest;
    // The class of paths for which it is the reference: at most one executor for each class.
    PathClass reference = PathClass::none;
    Alternative alternative;
    // If several calls make a transfer, the first one is shown; for none, the executor's name and
    // settings.
    std::vector<Call> calls;
    LibraryUse library;
};

struct MemoryTraits {
    // The class of paths for which this kind of memory is the reference: at most one kind for each
    // class and kind of place.
    PathClass reference = PathClass::none;
    // The other kind of memory that GPUs access exactly the same.
    std::string same_as;
};

}  // namespace waywiser
