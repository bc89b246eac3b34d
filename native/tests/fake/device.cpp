// The devices of the fake.
#include <algorithm>
#include <array>
#include <cstdio>

#include "context.hpp"
#include "gpu/gpu.hpp"
#include "ranges.hpp"
#include "stream_thread.hpp"

namespace waywiser::gpu {

using fake::Context;

std::string backend() { return "fake"; }
std::string runtime_version() { return "13.0"; }
std::string architectures() { return "75-real 90-real 90-virtual"; }
std::string driver_version() { return unavailable_reason().empty() ? "13.0" : ""; }

std::string unavailable_reason() {
    if (Context::instance().forked()) return kForkedReason;
    const auto settings = Context::instance().options();
    if (!settings->unavailable.empty()) return settings->unavailable;
    return settings->devices == 0 ? "the fake has no device: set devices in WAYWISER_FAKE" : "";
}

int device_count() {
    if (!unavailable_reason().empty()) return 0;
    Context::instance().note_use();
    return Context::instance().options()->devices;
}

Device device(int index) {
    Context::instance().check_device("cudaGetDeviceProperties", index);
    Context::instance().count(fake::Point::call, "cudaGetDeviceProperties");
    const auto settings = Context::instance().options();
    std::array<char, 48> uuid{};
    std::snprintf(uuid.data(), uuid.size(), "GPU-fake0000-0000-0000-0000-%012x",
                  static_cast<unsigned>(index));
    std::array<char, 24> pci{};
    const unsigned bus = 2 * static_cast<unsigned>(index) + 0x10u;
    std::snprintf(pci.data(), pci.size(), "0000:%02x:00.0", bus);
    return {.index = index,
            .name = "Fake GPU",
            .uuid = uuid.data(),
            .pci = pci.data(),
            .compute_major = 9,
            .compute_minor = 0,
            .multiprocessors = 8,
            .memory_bytes = settings->memory_bytes,
            .l2_bytes = std::size_t{4} << 20,
            .pageable_access = settings->pageable_access,
            .concurrent_managed = true,
            .memory_pools = !settings->without.contains("pool"),
            .vmm = !settings->without.contains("vmm"),
            .ipc = !settings->without.contains("ipc"),
            .host_native_atomics = false};
}

bool can_access_peer(int from, int to) {
    Context::instance().check_device("cudaDeviceCanAccessPeer", std::max(from, to));
    Context::instance().count(fake::Point::call, "cudaDeviceCanAccessPeer");
    return Context::instance().options()->peers(from, to);
}

std::size_t free_bytes(int device) {
    Context::instance().enter("cudaMemGetInfo", device);
    const std::size_t used = fake::Ranges::instance().device_bytes(device);
    return Context::instance().options()->memory_bytes - used;
}

void synchronize_device(int device) {
    Context& context = Context::instance();
    context.enter("cudaDeviceSynchronize", device);
    context.hang(context.pass(fake::Point::sync, "cudaDeviceSynchronize"));
    fake::wait_device(device);
    context.check("cudaDeviceSynchronize");
}

void enable_peer_access(int from, int to) {
    constexpr int kPeerAccessUnsupported = 217;
    if (!can_access_peer(from, to)) {
        throw Error(Failure::other, "cudaDeviceEnablePeerAccess", kPeerAccessUnsupported,
                    "cudaErrorPeerAccessUnsupported");
    }
    for (const int each : {from, to}) {
        Context::instance().enter("cudaDeviceEnablePeerAccess", each);
    }
    Context::instance().enable_peer(from, to);
}

}  // namespace waywiser::gpu
