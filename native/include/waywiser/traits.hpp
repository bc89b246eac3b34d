// What others must know of an executor or a kind of memory, so that nobody treats it specially by
// its name. All of it is optional: the defaults are those of an executor of which nothing is known.
#pragma once

#include <cstddef>
#include <string>

namespace waywiser {

// A class of paths: within the host, with a GPU at an end, of unified memory, of files.
enum class PathClass { none, host, gpu, unified, file };

// Executors of one family do their work by the same means.
enum class Family { other, runtime_copy, kernel, cpu, unified_memory, file, staged };

// The links that bytes take: those of the shortest route between both sides; also between two GPUs
// that are peers those to the host; those of other GPUs too, named by the parameter `relays`.
enum class Route { shortest, through_host, over_relays };

// What an executor uses that other work on the machine uses too. What the memory of a path adds
// (the driver's CPUs stage pageable memory) is not part of it.
struct Shares {
    bool links = true;
    bool host_memory = true;
    bool cpus = true;
    bool file_system = true;
};

// Another executor that a program may use instead on the same path. Reports compare the two.
struct Alternative {
    std::string executor;    // empty for none
    std::string question;    // as the title of a table
    std::string own;         // in a cell, if this executor is the faster one
    std::string other;       // the same of the other executor
    bool host_only = false;  // asked only of paths with memory of the host at an end
};

struct Traits {
    // Of a contiguous transfer: fewer bytes take the time of its own work. They are measured only
    // if somebody asks for the size.
    std::size_t least_bytes = 0;
    // Programs do it, and the transfer library never does: only a full survey measures it unasked.
    bool survey_only = false;
    // Its best settings are found by a search: only a full survey varies them unasked.
    bool settings_on_request = false;
    // It is read beside another executor of its class, and never asked for itself.
    bool comparison = false;
    // Transfers of all GPUs at once are measured by it too, and not by the reference alone.
    bool in_sets = false;

    Family family = Family::other;
    Shares shares;
    Route route = Route::shortest;
    // The class of paths that are judged by it: at most one executor for each class.
    PathClass reference = PathClass::none;
    Alternative alternative;
};

struct MemoryTraits {
    // The class of paths that are judged by memory of this kind: at most one kind for each class
    // and kind of place.
    PathClass reference = PathClass::none;
    // GPUs reach it exactly as they reach this other kind of memory.
    std::string same_as;
};

}  // namespace waywiser
