#include "transfer/policy.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "host/pages.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/engine.hpp"
#include "transfer/json_reader.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/huge_page.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kMostName = 256;  // bytes of a name
constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostThreads = 8192;
constexpr std::uint64_t kMostRelays = 256;
constexpr std::size_t kChunkUnit = 4096;  // of chunks in policies, on every machine
constexpr std::size_t kMostChunk = std::size_t{64} << 20;
constexpr std::size_t kMostSlots = 16;
constexpr std::size_t kSmallestPolite = std::size_t{256} << 10;
constexpr std::size_t kChunkOfCpus = std::size_t{4} << 20;  // nothing is staged

constexpr std::array<std::string_view, 5> kMemories = {"pageable", "pinned", "device", "file",
                                                       "fresh"};
constexpr std::array<std::string_view, 4> kRelations = {"", "same", "peers", "no-peers"};

template <std::size_t Count>
std::size_t index_of(const std::array<std::string_view, Count>& names, const std::string& name,
                     const JsonReader& reader, const char* what) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) reader.fail(std::string("an unknown ") + what);
    return static_cast<std::size_t>(found - names.begin());
}

std::string name_of(JsonReader& reader) {
    std::string name = reader.text();
    if (name.size() > kMostName) {
        reader.fail("a name of more than " + std::to_string(kMostName) + " bytes");
    }
    return name;
}

std::uint64_t number_of(JsonReader& reader, std::uint64_t least, std::uint64_t most) {
    const std::uint64_t value = reader.integer();
    if (value < least || value > most) {
        reader.fail("a number that is not from " + std::to_string(least) + " to " +
                    std::to_string(most));
    }
    return value;
}

double seconds_of(JsonReader& reader) {
    const double seconds = reader.number();
    if (seconds < 0) reader.fail("a negative time");
    return seconds;
}

// --- rows ------------------------------------------------------------------------------------

bool on_device(PolicyMemory memory) { return memory == PolicyMemory::device; }
bool in_file(PolicyMemory memory) { return memory == PolicyMemory::file; }

// A machine whose executors have the defaults of one where `threads` CPUs could be used.
Machine example_machine(std::size_t threads, const PolicyKey& key) {
    Machine machine;
    NumaNode node{0, {}};
    for (std::size_t cpu = 0; cpu < threads; ++cpu) node.cpus.push_back(static_cast<int>(cpu));
    machine.numa.push_back(std::move(node));
    const bool peers = key.relation != PolicyRelation::no_peers;
    for (const int gpu : {0, 1}) {
        GpuPlace place;
        place.index = gpu;
        if (peers) place.peers = {1 - gpu};
        machine.gpus.push_back(std::move(place));
    }
    FilePlace file;
    file.name = "file";
    machine.files.push_back(std::move(file));
    return machine;
}

Memory example_memory(PolicyMemory memory, int gpu) {
    switch (memory) {
        case PolicyMemory::device: return {"device", {Place::Kind::gpu, gpu, {}}, {}};
        case PolicyMemory::file: return {"file", {Place::Kind::file, 0, "file"}, {}};
        case PolicyMemory::pinned: return {"pinned", {Place::Kind::numa, 0, {}}, {}};
        default: return {"pageable", {Place::Kind::numa, 0, {}}, {}};
    }
}

constexpr std::array<std::string_view, 8> kNeeded = {"from_bytes", "bytes",   "count", "threads",
                                                     "executor",   "seconds", "low",   "high"};

// Reads the rows of one class.
class RowReader {
public:
    RowReader(JsonReader& reader, const PolicyKey& key) : reader_(reader), key_(key) {}

    PolicyRow row(bool host_contiguous) {
        PolicyRow row;
        row.host_contiguous = host_contiguous;
        Settings given;
        std::uint64_t pieces = 0;
        std::array<bool, kNeeded.size()> seen{};
        reader_.object([&](const std::string& key) {
            for (std::size_t i = 0; i < kNeeded.size(); ++i) seen[i] = seen[i] || key == kNeeded[i];
            if (key == "from_bytes") {
                row.from_bytes = number_of(reader_, 0, kMostNumber);
            } else if (key == "bytes") {
                row.bytes = number_of(reader_, 0, kMostNumber);
            } else if (key == "count") {
                row.count = number_of(reader_, 1, kMostNumber);
            } else if (key == "threads") {
                row.threads = number_of(reader_, 1, kMostThreads);
            } else if (key == "pieces") {
                pieces = number_of(reader_, 1, kMostNumber);
            } else if (key == "seconds") {
                row.seconds = seconds_of(reader_);
            } else if (key == "low") {
                row.low = seconds_of(reader_);
            } else if (key == "high") {
                row.high = seconds_of(reader_);
            } else if (key == "executor") {
                row.executor = name_of(reader_);
            } else if (key == "settings") {
                reader_.object([&](const std::string& name) { given[name] = name_of(reader_); });
            } else {
                reader_.skip();
            }
        });
        require(row, seen);
        row.pieces = pieces == 0 ? row.count : pieces;
        decide(row, given);
        return row;
    }

private:
    // All that a row needs, in the ranges that it must have.
    void require(const PolicyRow& row, std::span<const bool> seen) {
        const auto missing = std::ranges::find(seen, false);
        if (missing != seen.end()) {
            const std::string_view name = kNeeded[static_cast<std::size_t>(missing - seen.begin())];
            reader_.fail("a row without " + std::string(name) + " ends");
        }
        const bool in_interval = 0 < row.low && row.low <= row.seconds && row.seconds <= row.high;
        if (!in_interval || !std::isfinite(row.high)) {
            reader_.fail("a row whose time is not within its interval ends");
        }
        if (row.host_contiguous && row.count == 1) {
            reader_.fail("a row of one copy among those of lists ends");
        }
    }
    void decide(PolicyRow& row, const Settings& given) {
        const Use& use = use_of(row);
        if (!use.is_allowed) {
            reader_.fail("a row with an executor that this version does not use for " +
                         std::string(row.count == 1 ? "contiguous copies" : "lists") + " ends");
        }
        Settings settings = use.defaults;
        for (const auto& [name, value] : given) {
            if (std::ranges::find(use.names, name) != use.names.end()) settings[name] = value;
        }
        shape(row, settings);
        if (on_device(key_.from) && on_device(key_.to)) {
            const Endpoint gpu = Endpoint::device(nullptr, 0);
            row.shape.least = default_shape(gpu, gpu, row.bytes, row.threads).least;
        }
        row.method = row.count > 1 ? list_method(row) : method(row);
        if (row.count > 1) return;
        row.over_relays = row.executor == "relay";
        row.shape.direct_io = row.executor == "direct-io";
        if (row.executor == "cpu") row.shape.chunk = kChunkOfCpus;
        const std::size_t huge_page = huge_page_bytes();
        if (key_.to == PolicyMemory::fresh && row.shape.chunk >= huge_page) {
            // Each thread creates whole huge pages.
            row.shape.chunk = row.shape.chunk / huge_page * huge_page;
            row.shape.least = huge_page;
        }
    }

    [[nodiscard]] PolicyMethod list_method(const PolicyRow& row) const {
        const bool gpus = on_device(key_.from) || on_device(key_.to);
        if (!gpus || in_file(key_.from) || in_file(key_.to)) return PolicyMethod::standard;
        if (row.executor == "sm") return PolicyMethod::kernel;
        if (row.executor == "gather-scatter" && row.host_contiguous) return PolicyMethod::pipeline;
        if (row.executor == "batch") return PolicyMethod::batch;
        return row.executor == "copy-engine" ? PolicyMethod::plain : PolicyMethod::standard;
    }

    // Of a contiguous copy with the shape of the row.
    [[nodiscard]] PolicyMethod method(const PolicyRow& row) const {
        const bool files = in_file(key_.from) || in_file(key_.to);
        const bool gpus = on_device(key_.from) || on_device(key_.to);
        const bool two_gpus = on_device(key_.from) && on_device(key_.to);
        const bool pinned = key_.from == PolicyMemory::pinned || key_.to == PolicyMemory::pinned;
        const std::string& executor = row.executor;
        bool chunked = false;
        if (executor == "copy-engine") {
            if (!files) return PolicyMethod::plain;
        } else if (executor == "staged") {
            chunked = two_gpus ? key_.relation != PolicyRelation::same : gpus && !pinned;
        } else if (executor == "relay") {
            chunked = gpus && !two_gpus;
        } else if (executor == "cpu") {
            chunked = !gpus && !files;
            if (chunked && is_small_by_one_thread(row)) return PolicyMethod::plain;
        } else if (executor == "direct-io" || executor == "buffered-io") {
            chunked = files && !gpus && !(in_file(key_.from) && in_file(key_.to));
        }
        return chunked ? PolicyMethod::chunked : PolicyMethod::standard;
    }

    // The same as a plain copy between host memories, which needs no look-up.
    [[nodiscard]] bool is_small_by_one_thread(const PolicyRow& row) const {
        return key_.to != PolicyMemory::fresh && row.shape.threads == 1 && !row.shape.streaming &&
               row.bytes < kPlainBelow;
    }

    // How the library uses the executor of a row.
    struct Use {
        bool is_allowed = false;
        std::vector<std::string> names;  // of settings
        Settings defaults;               // of settings that a row does not name
    };

    const Use& use_of(const PolicyRow& row) {
        const bool is_list = row.count > 1;
        const auto [place, is_new] = uses_.try_emplace({row.executor, row.threads, is_list});
        Use& use = place->second;
        const Executor* executor = Executors::instance().find(row.executor);
        if (!is_new || executor == nullptr) return use;
        LibraryUse library = executor->traits().library;
        use.is_allowed = is_list ? library.lists : library.contiguous;
        use.names = std::move(library.settings);
        const bool two_places = on_device(key_.from) && key_.relation != PolicyRelation::same;
        Transfer transfer;
        transfer.path = {example_memory(key_.from, 0), example_memory(key_.to, two_places ? 1 : 0),
                         row.executor};
        transfer.bytes = row.bytes;
        if (is_list) transfer.layout.kind = Layout::Kind::list;
        for (const Parameter& parameter :
             executor->parameters(transfer, example_machine(row.threads, key_))) {
            const bool is_used = std::ranges::find(use.names, parameter.name) != use.names.end();
            // Relays are named there, and counted here.
            if (is_used && parameter.name != "relays" && !parameter.choices.empty()) {
                use.defaults[parameter.name] = parameter.choices.front();
            }
        }
        return use;
    }

    void shape(PolicyRow& row, const Settings& settings) {
        row.relays = kMostRelays;
        row.blocks = 0;  // as many as without a policy
        for (const auto& [name, value] : settings) {
            const auto number = [&](std::size_t least, std::size_t most) {
                std::size_t parsed = 0;
                const char* const end = value.data() + value.size();
                const auto [at, error] = std::from_chars(value.data(), end, parsed);
                if (error != std::errc{} || at != end || parsed < least || parsed > most) {
                    reader_.fail("a row whose setting " + name + " is not from " +
                                 std::to_string(least) + " to " + std::to_string(most) + " ends");
                }
                return parsed;
            };
            if (name == "chunk" || name == "block") {
                row.shape.chunk = number(kChunkUnit, kMostChunk);
                if (row.shape.chunk % kChunkUnit != 0) {
                    reader_.fail("a row whose setting " + name + " is no multiple of 4 KiB ends");
                }
            } else if (name == "slots") {
                row.shape.slots = number(1, kMostSlots);
            } else if (name == "threads" || name == "depth") {
                row.shape.threads = number(1, kMostThreads);
            } else if (name == "relays") {
                row.relays = number(1, kMostRelays);
            } else if (name == "blocks") {
                row.blocks = static_cast<unsigned>(number(1, kMostThreads));
            } else if (name == "stores") {
                if (value != "streaming" && value != "ordinary") {
                    reader_.fail("a row whose setting stores is unknown ends");
                }
                row.shape.streaming = value == "streaming";
            }
        }
    }

    JsonReader& reader_;
    const PolicyKey& key_;
    std::map<std::tuple<std::string, std::uint64_t, bool>, Use> uses_;
};

// --- the file --------------------------------------------------------------------------------

Fingerprint fingerprint_of(JsonReader& reader) {
    Fingerprint machine;
    reader.object([&](const std::string& key) {
        if (key == "gpu") {
            machine.gpu = name_of(reader);
        } else if (key == "gpu_link") {
            machine.gpu_link = name_of(reader);
        } else if (key == "cpu") {
            machine.cpu = name_of(reader);
        } else if (key == "driver") {
            machine.driver = number_of(reader, 0, kMostNumber);
        } else if (key == "hypervisor") {
            machine.hypervisor = name_of(reader);
        } else {
            reader.skip();
        }
    });
    return machine;
}

// The key of the rows for lists that are contiguous in host memory. They are not in `rows`, so that
// a library that does not know the key uses them for no other lists.
constexpr std::string_view kHostContiguous = "host_contiguous";

// The members of a class may come in any order, so its rows are read in a second pass.
PolicyKey key_of(JsonReader& reader, bool& has_rows) {
    PolicyKey key;
    bool has_from = false;
    bool has_to = false;
    reader.object([&](const std::string& name) {
        if (name == "from" || name == "to") {
            const auto memory = static_cast<PolicyMemory>(
                index_of(kMemories, name_of(reader), reader, "kind of memory"));
            (name == "from" ? key.from : key.to) = memory;
            (name == "from" ? has_from : has_to) = true;
        } else if (name == "relation") {
            key.relation = static_cast<PolicyRelation>(
                index_of(kRelations, name_of(reader), reader, "relation of GPUs"));
        } else if (name == "peers_idle") {
            key.peers_idle = reader.boolean();
        } else {
            has_rows = has_rows || name == "rows";
            reader.pass_over();
        }
    });
    const bool two_gpus = on_device(key.from) && on_device(key.to);
    if (!has_from || !has_to || !has_rows) reader.fail("a class without from, to or rows ends");
    if (key.from == PolicyMemory::fresh) reader.fail("a class from fresh memory ends");
    if (two_gpus != (key.relation != PolicyRelation::none)) {
        reader.fail("a class whose relation does not fit its memory ends");
    }
    return key;
}

PolicyClass class_of(JsonReader& reader, std::size_t& rows) {
    PolicyClass made;
    JsonReader again = reader;
    bool has_rows = false;
    made.key = key_of(reader, has_rows);
    RowReader row_reader(again, made.key);
    again.object([&](const std::string& name) {
        const bool host_contiguous = name == kHostContiguous;
        if (name != "rows" && !host_contiguous) return again.skip();
        if (host_contiguous && (on_device(made.key.from) == on_device(made.key.to) ||
                                in_file(made.key.from) || in_file(made.key.to))) {
            again.fail("lists with a side in host memory in a class without one");
        }
        again.array([&] {
            if (++rows > kMostPolicyRows) {
                again.fail("more than " + std::to_string(kMostPolicyRows) + " rows");
            }
            made.rows.push_back(row_reader.row(host_contiguous));
        });
    });
    reader = again;
    const auto place = [](const PolicyRow& row) {
        return std::tuple(row.host_contiguous, row.count, row.threads, row.from_bytes);
    };
    std::ranges::sort(made.rows, {}, place);
    if (std::ranges::adjacent_find(made.rows, {}, place) != made.rows.end()) {
        reader.fail("a class with two rows for the same sizes ends");
    }
    return made;
}

// The version first: it says what the rest means. The reader stays at the start of the object.
void check_header(const JsonReader& reader) {
    JsonReader first = reader;
    std::set<std::string> missing = {"format", "version", "machine", "classes"};
    std::string format;
    std::uint64_t version = 0;
    first.object([&](const std::string& key) {
        if (key == "format") {
            format = name_of(first);
        } else if (key == "version") {
            version = first.integer();
        } else {
            first.pass_over();
        }
        missing.erase(key);
    });
    if (!missing.empty()) throw PolicyDamage("it has no " + *missing.begin());
    if (format != "waywiser-policy") throw PolicyDamage("it is not a policy of Waywiser");
    if (version != kVersion) {
        throw PolicyDamage("it has version " + std::to_string(version) +
                           " of the format, and this library reads version " +
                           std::to_string(kVersion));
    }
}

Policy read_policy(std::string_view text) {
    JsonReader reader(text);
    check_header(reader);
    Policy policy;
    std::size_t rows = 0;
    reader.object([&](const std::string& key) {
        if (key == "machine") {
            policy.machine = fingerprint_of(reader);
        } else if (key == "classes") {
            reader.array([&] { policy.classes.push_back(class_of(reader, rows)); });
        } else {
            reader.skip();
        }
    });
    reader.end();
    std::set<std::size_t> cells;
    for (const PolicyClass& one : policy.classes) {
        if (!cells.insert(one.key.cell()).second) throw PolicyDamage("it has a class twice");
    }
    return policy;
}

}  // namespace

Policy parse_policy(std::string_view text) {
    if (text.size() > kMostPolicyBytes) {
        throw PolicyDamage("it is larger than " + std::to_string(kMostPolicyBytes >> 20) + " MiB");
    }
    try {
        return read_policy(text);
    } catch (const JsonError& error) {
        throw PolicyDamage(std::string("it has ") + error.what());
    }
}

std::string difference(const Fingerprint& policy, const Fingerprint& here,
                       const std::vector<std::string>& links) {
    std::string text;
    const auto compare = [&](const char* what, const std::string& theirs, const std::string& ours,
                             bool equal) {
        if (theirs.empty() || ours.empty() || equal) return;
        text +=
            (text.empty() ? "" : ", ") + std::string(what) + " " + theirs + " instead of " + ours;
    };
    const auto compare_equal = [&](const char* what, const std::string& theirs,
                                   const std::string& ours) {
        compare(what, theirs, ours, theirs == ours);
    };
    const auto number = [](std::uint64_t value) {
        return value == 0 ? std::string() : std::to_string(value);
    };
    compare_equal("GPU", policy.gpu, here.gpu);
    const bool known = std::ranges::find(links, policy.gpu_link) != links.end();
    compare("link", policy.gpu_link, here.gpu_link, known || policy.gpu_link == here.gpu_link);
    compare_equal("CPU", policy.cpu, here.cpu);
    compare_equal("driver", number(policy.driver), number(here.driver));
    compare_equal("hypervisor", policy.hypervisor, here.hypervisor);
    return text;
}

// --- look-up ---------------------------------------------------------------------------------

const PolicyDecision* PolicyTable::Curve::at(std::size_t bytes) const {
    const auto next = std::ranges::upper_bound(from, bytes);
    if (next == from.begin()) return nullptr;
    return &decisions[static_cast<std::size_t>(next - from.begin()) - 1];
}

CopyShape PolicyDecision::shape_for(int gpu) const {
    CopyShape used = shape;
    if (used.relays.empty()) return used;
    std::erase(used.relays, gpu);
    if (used.relays.size() > row->relays) used.relays.resize(row->relays);
    return used;
}

PolicyDecision PolicyTable::bound(const PolicyRow& row, const PolicyLimits& limits) {
    PolicyDecision made{
        .method = row.method, .shape = row.shape, .blocks = row.blocks, .row = &row};
    CopyShape& shape = made.shape;
    if (shape.threads != 0) shape.threads = std::min(shape.threads, limits.threads);
    if (limits.multiprocessors != 0) {
        made.blocks = std::min(made.blocks, limits.multiprocessors);
    }
    if (made.method != PolicyMethod::chunked) return made;
    const std::size_t page = host::page_bytes();
    std::size_t most = std::max(limits.host_slot, page);
    if (row.over_relays) {
        shape.relays = limits.relays;
        if (shape.relays.empty()) made.method = PolicyMethod::standard;
        most = std::min(most, std::max(limits.relay_slot, page));
        // Of pinned memory: no CPU moves bytes.
        if (shape.threads == 0) {
            shape.threads = std::min(1 + std::min(row.relays, shape.relays.size()),
                                     std::max<std::size_t>(limits.threads, 1));
        }
    }
    if (limits.max_queued_bytes != 0) {
        most =
            std::min(most, std::max(std::bit_floor(limits.max_queued_bytes / 2), kSmallestPolite));
    }
    shape.chunk = std::max(std::min(shape.chunk, most) / page * page, page);
    return made;
}

template <class Select>
std::vector<PolicyTable::Curve> PolicyTable::curves(const std::vector<PolicyRow>& rows,
                                                    const PolicyLimits& limits,
                                                    const Select& is_one_of) {
    std::uint64_t threads = 0;
    for (const PolicyRow& row : rows) {
        const bool fits = is_one_of(row) && row.threads <= limits.threads;
        if (fits) threads = std::max(threads, row.threads);
    }
    std::vector<Curve> made;
    for (const PolicyRow& row : rows) {  // by count, then by size
        if (!is_one_of(row) || row.threads != threads) continue;
        if (made.empty() || made.back().count != row.count) made.emplace_back().count = row.count;
        made.back().from.push_back(row.from_bytes);
        made.back().decisions.push_back(bound(row, limits));
    }
    return made;
}

PolicyTable::PolicyTable(std::shared_ptr<const Policy> policy, const PolicyLimits& limits)
    : policy_(std::move(policy)) {
    for (const PolicyClass& one : policy_->classes) {
        if (one.key.peers_idle && limits.relays.empty()) continue;
        const std::size_t cell = one.key.cell();
        auto copies = curves(one.rows, limits, [](const PolicyRow& row) { return row.count == 1; });
        if (!copies.empty()) copies_[cell] = std::move(copies.front());
        if (one.key.peers_idle) continue;
        scattered_[cell] = curves(one.rows, limits, [](const PolicyRow& row) {
            return row.count > 1 && !row.host_contiguous;
        });
        host_contiguous_[cell] =
            curves(one.rows, limits, [](const PolicyRow& row) { return row.host_contiguous; });
    }
}

const PolicyDecision* PolicyTable::list(const PolicyKey& key, Lists lists, std::size_t count,
                                        std::size_t bytes) const {
    const std::vector<Curve>& all = curves_of(lists)[key.cell()];
    if (all.empty() || count < 2) return nullptr;
    auto next = std::ranges::upper_bound(all, count, {}, &Curve::count);
    if (next != all.begin()) --next;
    return next->at(bytes);
}

std::size_t PolicyTable::Curve::plain_below(std::size_t standard) const {
    for (std::size_t i = 0; i < from.size() && from[i] < standard; ++i) {
        if (decisions[i].method == PolicyMethod::chunked) return from[i];
    }
    return standard;
}

std::size_t PolicyTable::plain_below(std::size_t standard, bool with_gpu) const {
    std::size_t least = standard;
    for (const PolicyClass& one : policy_->classes) {
        const PolicyKey& key = one.key;
        if (in_file(key.from) || in_file(key.to)) continue;
        const bool has_gpu = key.from == PolicyMemory::device || key.to == PolicyMemory::device;
        if (with_gpu && !has_gpu) continue;
        least = std::min(least, copies_[key.cell()].plain_below(standard));
    }
    return least;
}

}  // namespace waywiser::transfer
