// Managed memory on its way from one place to another, and back home: one buffer, whose bytes
// change places without changing their address.
#pragma once

#include <optional>
#include <string>

#include "gpu/gpu.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

// Why bytes cannot migrate along the path.
std::optional<std::string> migration_refusal(const Path& path);
// What the driver was told of the buffer, which is the source's: "none" by default.
std::string advice_of(const Memory& memory);
gpu::Location location_of(const Memory& memory);
// The destination's GPU where it is one, else the source's.
int migration_gpu(const Path& path);
// Throws Refused where a GPU of the path does not move managed memory page by page.
void require_migration(const Path& path);

// Sends bytes back to the source.
class Home {
public:
    explicit Home(const Path& path);
    // Also what else lies in the granules of the view, which the driver may have moved along.
    // Returns when they are there.
    void restore(const View& view) const;

private:
    gpu::Location location_;
    bool read_mostly_;
    gpu::Stream stream_;
};

}  // namespace waywiser
