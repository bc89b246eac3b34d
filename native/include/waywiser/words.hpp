// The data model in C++: places, memories, paths, layouts, transfers and operations. docs/design.md
// defines them; python/waywiser/words has the same types.
//
// Values without pointers to others: a caller owns its copies, and threads may read them at once.
// Pointers that Machine returns are into it, and valid until it changes or ends. Sizes are in
// bytes; GPUs, NUMA nodes and CPUs are numbers. Functions that parse throw NotSupported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace waywiser {

// The greatest index of a place and the greatest number of bytes. python/waywiser/words/numbers.py
// has the same. Small products of these bytes fit into 64 bits.
inline constexpr std::size_t kMostIndex = std::numeric_limits<int>::max();
inline constexpr std::size_t kMostBytes = std::size_t{1} << 50;
// The most places that a memory is at.
inline constexpr int kMostTogether = 1024;

// The number that is written in up to 20 digits; none for other texts and for more than `most`.
std::optional<std::size_t> whole_number(const std::string& text, std::size_t most = kMostBytes);

// Typed settings of a memory's variant or of an executor: all values are text, as on the wire.
using Settings = std::map<std::string, std::string>;

// Throw NotSupported for a name, settings or bytes that have no text in the grammar. Values of a
// layout that begin with a digit are numbers of bytes.
void require_name(const std::string& name);
void require_settings(const Settings& settings);
void require_layout_settings(const Settings& settings);
void require_bytes(std::size_t bytes);

struct Place {
    enum class Kind { numa, gpu, file, rank };
    Kind kind = Kind::numa;
    int index = 0;
    std::string file;
    int last = -1;  // of several GPUs or ranks, of which `index` is the first; -1 for one place

    bool operator==(const Place&) const = default;
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool several() const { return last >= 0; }
    [[nodiscard]] std::size_t count() const {
        return several() ? static_cast<std::size_t>(last - index) + 1 : 1;
    }
    // The single places.
    [[nodiscard]] std::vector<Place> each() const;
    // "numa:0", "gpu:1", "gpu:0-7", "file:/data/x", "rank:3", "rank:0-7"
    static Place parse(const std::string& text);
};

struct Memory {
    std::string kind;  // "pageable", "pinned", "write-combined", "device", ...
    Place place;
    Settings variant;

    bool operator==(const Memory&) const = default;
    [[nodiscard]] std::string text() const;
    // A memory at several places is one at each.
    [[nodiscard]] std::vector<Memory> each() const;
    [[nodiscard]] bool on_host() const { return place.kind == Place::Kind::numa; }
    [[nodiscard]] bool on_gpu() const { return place.kind == Place::Kind::gpu; }
    [[nodiscard]] bool in_file() const { return place.kind == Place::Kind::file; }
    [[nodiscard]] bool at_rank() const { return place.kind == Place::Kind::rank; }
};

struct Path {
    Memory source;
    Memory destination;
    std::string executor;

    bool operator==(const Path&) const = default;
    [[nodiscard]] std::string text() const;
};

// The layout of a transfer's bytes, the same on both sides. python/waywiser/words/transfer.py
// explains the settings.
struct Layout {
    enum class Kind { contiguous, box, list };
    Kind kind = Kind::contiguous;
    Settings settings;

    bool operator==(const Layout&) const = default;
    [[nodiscard]] std::string text() const;
    static Kind parse_kind(const std::string& text);  // "contiguous", "box", "list"
};

struct Transfer {
    Path path;
    std::size_t bytes = 0;
    Settings parameters;
    Layout layout{};

    bool operator==(const Transfer&) const = default;
    [[nodiscard]] std::string text() const;
};

// An operation at a place with its parameters.
struct OperationCall {
    std::string name;
    Place place;
    Settings parameters;

    bool operator==(const OperationCall&) const = default;
    [[nodiscard]] std::string text() const;
};

enum class Cache { warm, dirtied, flushed };
enum class TimingMode { device, host };

// The places of a machine and which of them reach each other. It is read from a capture, so it can
// describe a machine other than this one.
struct NumaNode {
    int index = 0;          // as the operating system numbers it
    std::vector<int> cpus;  // logical CPUs of the node that this process may use
    bool operator==(const NumaNode&) const = default;
};
struct GpuPlace {
    int index = 0;  // as CUDA numbers it with CUDA_DEVICE_ORDER=PCI_BUS_ID
    std::string uuid;
    int numa = -1;           // -1 if unknown
    std::vector<int> peers;  // GPUs whose memory this one can access directly
    bool pageable_access = false;
    bool operator==(const GpuPlace&) const = default;
};
// A place for files, and what its name stands for on this machine.
struct FilePlace {
    std::string name;        // as in file:NAME; "scratch" and "tmpfs" are the survey's own
    std::string path;        // the file, or the folder in which scratch files are made
    bool scratch = false;    // files are made there and removed; else it exists and is read only
    std::size_t bytes = 0;   // maximum that may be used of the file, or by all scratch files
    std::string filesystem;  // its type, as the system names it: "ext4", "tmpfs"; "" if unknown
    bool direct = true;      // files there can be opened with O_DIRECT
    bool operator==(const FilePlace&) const = default;
};
// A process of one launch, by its rank. Memory at it is memory of its node or of its GPU.
struct RankPlace {
    int index = 0;
    std::vector<int> cpus;  // that it may use
    int numa = 0;           // the node of these CPUs
    int gpu = -1;           // -1 if it has none
    // Kinds of memory whose addresses its library of messages does not take.
    std::vector<std::string> unsent;
    std::string messages = "mpi";  // that library: "mpi" or "nccl"
    // Those that its collective calls do not take, or crash with.
    std::vector<std::string> unexchanged;
    bool operator==(const RankPlace&) const = default;
};
struct Machine {
    std::vector<NumaNode> numa;
    std::vector<GpuPlace> gpus;
    std::vector<FilePlace> files;
    std::vector<RankPlace> ranks;

    [[nodiscard]] const NumaNode* node(int index) const;
    [[nodiscard]] const GpuPlace* gpu(int index) const;
    [[nodiscard]] const FilePlace* file(const std::string& name) const;
    [[nodiscard]] const RankPlace* rank(int index) const;
    // The CPUs of a NUMA node; empty for a node that does not exist and for other places.
    [[nodiscard]] std::vector<int> cpus(const Place& place) const;
};

// This machine or this build does not support a workload; what() is the reason.
class NotSupported : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace waywiser
