#include "measure/clocks.hpp"

#include "gpu/gpu.hpp"
#include "host/clock.hpp"

namespace waywiser::measure {
namespace {

constexpr double kSeconds = 0.1;  // clocks rise within some tens of milliseconds of work
constexpr std::size_t kBytes = std::size_t{32} << 20;
constexpr int kFillsPerWait = 16;

}  // namespace

void ClockRaiser::raise(int gpu) {
    if (raised_.contains(gpu)) return;
    const gpu::Stream stream(gpu);
    const gpu::DeviceBuffer scratch(gpu, kBytes);
    for (const double start = host::now(); host::now() - start < kSeconds;) {
        for (int i = 0; i < kFillsPerWait; ++i) gpu::fill_async(scratch.data(), 0, kBytes, stream);
        stream.synchronize();
    }
    raised_.insert(gpu);  // not if it failed: the next call tries again
}

}  // namespace waywiser::measure
