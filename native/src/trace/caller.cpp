#include "trace/caller.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

namespace waywiser::trace {
namespace {

constexpr std::size_t kPythonEntries = 512, kNativeEntries = 512, kChains = 128;
constexpr std::size_t kMostWalked = 96, kMostNativeWalked = 48, kMostNativeFrames = 4;

std::size_t mix(std::uint64_t value) {
    value *= 0x9e3779b97f4a7c15ull;
    return static_cast<std::size_t>(value >> 32);
}

// The package that this library is installed in: its Python files call the transfer library for the
// program.
std::string own_package() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&own_package), &info) == 0) return {};
    std::string path = info.dli_fname;
    for (int up = 0; up < 2 && !path.empty(); ++up)
        path.resize(
            std::max<std::size_t>(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'), 0));
    return path.ends_with("/waywiser") ? path + "/" : std::string();
}

// ".../lib/python3.12/...", "lib64", and the archive of embedded builds.
bool in_standard_library(std::string_view file) {
    for (std::size_t at = file.find("/python3"); at != std::string_view::npos;
         at = file.find("/python3", at + 1)) {
        const std::string_view before = file.substr(0, at);
        std::size_t end = at + 8;
        while (end < file.size() && (file[end] == '.' || (file[end] >= '0' && file[end] <= '9')))
            ++end;
        const std::string_view after = file.substr(end);
        if (after.starts_with("zip/")) return true;
        if (after.starts_with('/') && (before.ends_with("/lib") || before.ends_with("/lib64")))
            return true;
    }
    return false;
}

}  // namespace

bool is_own_code(const std::string& file) {
    static const auto& package = *new std::string(own_package());  // is used until the very end
    if (file.find("/site-packages/") != std::string::npos ||
        file.find("/dist-packages/") != std::string::npos || file.starts_with("<frozen"))
        return false;
    if (!package.empty() && file.starts_with(package)) return false;
    return !in_standard_library(file);
}

CallerCache::CallerCache(Sites& sites)
    : sites_(sites), python_(kPythonEntries), native_(kNativeEntries), chains_(kChains) {}

void CallerCache::read_python(PythonEntry& entry, const python::RawFrame& raw,
                              const python::Code& code) {
    const auto file = python::read_text(code.file), name = python::read_text(code.name);
    entry.raw = raw;
    entry.code = code;
    entry.file_bytes = file ? file->bytes : std::string();
    entry.own_code = file && is_own_code(file->utf8);
    entry.frame = 0;
    if (!file) return;
    entry.frame = sites_.frame({.python = true,
                                .place = file->utf8,
                                .function = name ? name->utf8 : std::string(),
                                .line = python::read_line(code, raw.instruction)});
}

const CallerCache::PythonEntry* CallerCache::python_entry(const python::RawFrame& raw) {
    const auto code = python::read_code(raw.code);
    if (!code) return nullptr;
    const std::uint64_t key = raw.code ^ (static_cast<std::uint64_t>(raw.instruction) << 40);
    PythonEntry& entry = python_[mix(key) % kPythonEntries];
    // The code object may have been freed, and another one made at its address.
    if (entry.raw.code != raw.code || entry.raw.instruction != raw.instruction ||
        !(entry.code == *code) || !python::has_bytes(code->file, entry.file_bytes))
        read_python(entry, raw, *code);
    return &entry;
}

bool CallerCache::python_site(SiteId& site) {
    std::array<python::RawFrame, kMostWalked> raw;
    const std::size_t count = python::read_frames(raw);
    std::array<FrameId, kMostFrames> own{}, others{};
    std::size_t owns = 0, other = 0;
    for (std::size_t i = 0; i < count && owns < kMostFrames; ++i) {
        const PythonEntry* const entry = python_entry(raw[i]);
        if (entry == nullptr || entry->frame == 0) continue;
        if (entry->own_code) {
            own[owns++] = entry->frame;
        } else if (other < kMostFrames) {
            others[other++] = entry->frame;
        }
    }
    // Where all is in packages, their lines are better than none.
    site = owns != 0 ? site_of({own.data(), owns}) : site_of({others.data(), other});
    return count != 0;
}

SiteId CallerCache::site_of(std::span<const FrameId> frames) {
    std::uint64_t key = frames.size();
    for (const FrameId frame : frames) key = key * 0x9e3779b97f4a7c15ull + frame;
    SiteEntry& entry = chains_[mix(key) % kChains];
    if (entry.count != frames.size() || entry.count == 0 ||
        !std::equal(frames.begin(), frames.end(), entry.frames.begin())) {
        entry.count = frames.size();
        std::copy(frames.begin(), frames.end(), entry.frames.begin());
        entry.site = sites_.site(frames);
    }
    return entry.site;
}

const CallerCache::NativeEntry& CallerCache::native_entry(std::uintptr_t address) {
    NativeEntry& entry = native_[mix(address) % kNativeEntries];
    if (entry.address == address) return entry;
    const native::Place place = native::find_place(address);
    entry.address = address;
    entry.owner = place.owner;
    entry.runtime_module = place.module.find("libcudart") != std::string::npos;
    entry.frame = sites_.frame({.python = false,
                                .place = place.module,
                                .function = place.function,
                                .offset = place.offset});
    return entry;
}

struct CallerCache::NativeWalk {
    CallerCache& cache;
    bool runtime = false, skipped = false, library = false;
    std::size_t walked = 0, count = 0;
    std::array<FrameId, kMostNativeFrames> frames{};

    bool visit(std::uintptr_t address) {
        if (++walked > kMostNativeWalked) return false;
        const NativeEntry& entry = cache.native_entry(address);
        if (entry.runtime_module) runtime = false;
        if (entry.owner == native::Owner::Tracer || entry.owner == native::Owner::Cuda) return true;
        // The library contains the runtime too.
        if (entry.owner == native::Owner::Library && count == 0) {
            library = true;
        } else if (runtime && !skipped && count == 0) {
            skipped = true;
            return true;
        }
        frames[count++] = entry.frame;
        return count < kMostNativeFrames;
    }
};

Caller CallerCache::find(bool runtime) {
    Caller caller;
    caller.python = python_site(caller.site);
    if (caller.python) return caller;
    NativeWalk walk{*this, runtime};
    native::walk(
        [](void* own, std::uintptr_t address) {
            return static_cast<NativeWalk*>(own)->visit(address);
        },
        &walk);
    caller.site = site_of({walk.frames.data(), walk.count});
    caller.library = walk.library;
    return caller;
}

bool CallerCache::in_library() {
    NativeWalk walk{*this};
    native::walk(
        [](void* own, std::uintptr_t address) {
            auto& now = *static_cast<NativeWalk*>(own);
            return now.visit(address) && now.count == 0;
        },
        &walk);
    return walk.library;
}

}  // namespace waywiser::trace
