#include "memory/placed_file.hpp"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <utility>

namespace waywiser {
namespace {

// Bytes of this process's scratch files at each place.
class Allowance {
public:
    static Allowance& instance() {
        static Allowance allowance;
        return allowance;
    }
    void take(const FilePlace& place, std::size_t bytes) {
        const std::scoped_lock lock(guard_);
        std::size_t& used = used_[place.path];
        if (bytes > place.bytes || used > place.bytes - bytes) {
            throw NotSupported("scratch files in " + place.path + " may take " +
                               std::to_string(place.bytes >> 20) + " MiB together, and " +
                               std::to_string((used + bytes) >> 20) + " MiB are needed");
        }
        used += bytes;
    }
    void give_back(const FilePlace& place, std::size_t bytes) {
        const std::scoped_lock lock(guard_);
        used_[place.path] -= bytes;
    }

private:
    std::mutex guard_;
    std::map<std::string, std::size_t> used_;
};

// Mappings of existing files, shared by buffers: even idle ones keep pages in the page cache.
class Mappings {
public:
    static Mappings& instance() {
        static Mappings mappings;
        return mappings;
    }
    void add(const std::string& path, std::byte* data, std::size_t bytes) {
        const std::scoped_lock lock(guard_);
        known_[data] = {path, bytes};
    }
    void remove(std::byte* data) {
        const std::scoped_lock lock(guard_);
        known_.erase(data);
    }
    // Page faults map them again.
    void let_go(const std::string& path) {
        const std::scoped_lock lock(guard_);
        for (const auto& [data, mapping] : known_) {
            if (mapping.path == path) madvise(data, mapping.bytes, MADV_DONTNEED);
        }
    }

private:
    struct Mapping {
        std::string path;
        std::size_t bytes = 0;
    };
    std::mutex guard_;
    std::map<std::byte*, Mapping> known_;
};

host::Descriptor existing_file(const FilePlace& place, std::size_t bytes) {
    host::Descriptor file = host::readable_file(place.path);
    if (const std::size_t has = host::file_bytes(file.get()); bytes > has) {
        throw NotSupported(place.path + " has " + std::to_string(has) + " bytes, and " +
                           std::to_string(bytes) + " are needed");
    }
    return file;
}

}  // namespace

PlacedFile::PlacedFile(const FilePlace& place, std::size_t bytes) : place_(place), bytes_(bytes) {
    if (!place_.scratch) {
        file_ = existing_file(place_, bytes);
        return;
    }
    Allowance::instance().take(place_, bytes);
    try {
        file_ = host::scratch_file(place_.path, bytes);
    } catch (...) {
        Allowance::instance().give_back(place_, bytes);
        throw;
    }
}

PlacedFile::~PlacedFile() {
    if (mapping_ != nullptr) Mappings::instance().remove(mapping_);
    if (place_.scratch) Allowance::instance().give_back(place_, bytes_);
}

void PlacedFile::mapped_at(std::byte* data, std::size_t bytes) {
    if (place_.scratch) return;  // no other buffer maps it
    Mappings::instance().add(place_.path, data, bytes);
    mapping_ = data;
}

void PlacedFile::evict(std::size_t bytes) const {
    if (!place_.scratch) Mappings::instance().let_go(place_.path);
    host::evict(get(), 0, bytes);
}

std::vector<Place::Kind> FileMemoryKind::place_kinds() const { return {Place::Kind::file}; }

bool FileMemoryKind::writable(const Memory& memory, const Machine& machine) const {
    return file_place(memory, machine).scratch;
}

bool FileMemoryKind::used_up(const Memory& memory) const { return is_cold(memory); }

std::size_t FileMemoryKind::most_bytes(const Memory& memory, const Machine& machine) const {
    return file_place(memory, machine).bytes;
}

std::optional<std::string> FileMemoryKind::unsupported_reason(const Memory& memory,
                                                              const Machine& machine) const {
    const FilePlace& place = file_place(memory, machine);
    if (!is_cold(memory) || !in_memory(place)) return std::nullopt;
    return place.filesystem + " keeps its files in memory: they are never cold";
}

Parameter FileMemoryKind::state_variant(std::vector<std::string> choices) {
    return {.name = "state",
            .description =
                "before each execution the file is out of the page cache (cold), or all in it "
                "(warm)",
            .choices = std::move(choices)};
}

bool FileMemoryKind::is_cold(const Memory& memory) const {
    const auto it = memory.variant.find("state");
    const std::string& state =
        it == memory.variant.end() ? info().parameters.front().fallback() : it->second;
    return state == "cold";
}

const FilePlace& file_place(const Memory& memory, const Machine& machine) {
    return *machine.file(memory.place.file);
}

bool in_memory(const FilePlace& place) {
    return place.filesystem == "tmpfs" || place.filesystem == "ramfs";
}

}  // namespace waywiser
