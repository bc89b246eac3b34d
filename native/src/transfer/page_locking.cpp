#include "transfer/page_locking.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>

namespace waywiser::transfer {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 20;

int pinning_device() {
    const std::vector<int> active = gpu::active_devices();
    return active.empty() ? 0 : active.front();
}

}  // namespace

std::vector<gpu::Registration> lock_pages(std::byte* data, std::size_t bytes) {
    const int device = pinning_device();
    std::vector<gpu::Registration> registrations;
    try {
        registrations.emplace_back(data, bytes, device);
        return registrations;
    } catch (const gpu::Error& error) {
        if (error.kind() == gpu::Failure::sticky || bytes <= kPiece) throw;
    }
    for (std::size_t at = 0; at < bytes; at += kPiece) {
        registrations.emplace_back(data + at, std::min(kPiece, bytes - at), device);
    }
    std::fprintf(stderr,
                 "waywiser: %zu MiB of pinned memory are in %zu registrations of at most %zu MiB, "
                 "since a larger one failed: other libraries may not copy across their borders\n",
                 bytes >> 20, registrations.size(), kPiece >> 20);
    return registrations;
}

void wait_for_gpus() {
    const gpu::CallerState keep;
    std::exception_ptr unknown;
    for (const int device : gpu::active_devices()) {
        try {
            gpu::synchronize_device(device);
        } catch (const gpu::Error& error) {
            if (error.kind() != gpu::Failure::sticky) unknown = std::current_exception();
        }
    }
    if (unknown) std::rethrow_exception(unknown);
}

}  // namespace waywiser::transfer
