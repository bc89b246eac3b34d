// The call site of the calling thread, from its frames in Python, else from those of compiled code.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/native_frames.hpp"
#include "trace/python_frames.hpp"
#include "trace/sites.hpp"

namespace waywiser::trace {

struct Caller {
    SiteId site = kUnknownSite;
    bool python = false;
    bool library = false;  // the innermost caller outside of CUDA is the transfer library
};

// What one thread has found before: looking up a frame or a chain again costs no search. `Sites`
// has to outlive it.
class CallerCache {
public:
    explicit CallerCache(Sites& sites);
    // `runtime`: the call is one of the CUDA runtime. In programs that contain it, its own function
    // lies in the program's module.
    Caller find(bool runtime);
    // Whether the transfer library makes this call.
    bool in_library();

private:
    struct PythonEntry {
        python::RawFrame raw;
        python::Code code;
        std::string file_bytes;  // as Python keeps it
        FrameId frame = 0;
        bool own_code = false;  // neither a package nor the standard library
    };
    struct NativeEntry {
        std::uintptr_t address = 0;
        native::Owner owner = native::Owner::Program;
        FrameId frame = 0;
        bool runtime_module = false;
    };
    struct SiteEntry {
        std::size_t count = 0;
        std::array<FrameId, kMostFrames> frames{};
        SiteId site = kUnknownSite;
    };
    struct NativeWalk;

    bool python_site(SiteId& site);
    const PythonEntry* python_entry(const python::RawFrame& raw);
    void read_python(PythonEntry& entry, const python::RawFrame& raw, const python::Code& code);
    const NativeEntry& native_entry(std::uintptr_t address);
    SiteId site_of(std::span<const FrameId> frames);

    Sites& sites_;
    std::vector<PythonEntry> python_;
    std::vector<NativeEntry> native_;
    std::vector<SiteEntry> chains_;
};

// Whether a file of Python is the user's own, by its path.
bool is_own_code(const std::string& file);

}  // namespace waywiser::trace
