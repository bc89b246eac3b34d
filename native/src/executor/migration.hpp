// Migration of managed memory: source and destination are one buffer, whose bytes change place but
// not address.
#pragma once

#include <optional>
#include <string>

#include "gpu/gpu.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

// Returns why bytes cannot migrate along the path, or nullopt.
std::optional<std::string> migration_unsupported_reason(const Path& path);
// The advice to the driver on the buffer, from the source's variant: "none" by default.
std::string advice_of(const Memory& memory);
gpu::Location location_of(const Memory& memory);
// The destination's GPU if it is on one, else the source's.
int migration_gpu(const Path& path);
// Throws NotSupported if a GPU of the path does not move managed memory page by page.
void require_migration(const Path& path);

// Migrates bytes back to the source.
class Home {
public:
    explicit Home(const Path& path);
    // Migrates whole granules of the view, which the driver may have moved, and waits for it.
    void restore(const View& view) const;

private:
    gpu::Location location_;
    bool read_mostly_;
    gpu::Stream stream_;
};

}  // namespace waywiser
