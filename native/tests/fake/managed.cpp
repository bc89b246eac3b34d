#include "managed.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "context.hpp"
#include "handles.hpp"
#include "ranges.hpp"

namespace waywiser::fake {
namespace {

template <class Ranges>
auto& containing(Ranges& ranges, const void* data) {
    const auto after = ranges.upper_bound(address(data));
    if (after != ranges.begin()) {
        auto& found = *std::prev(after);
        if (address(data) < found.first + found.second.bytes) return found;
    }
    throw std::out_of_range("not managed memory");
}

double gb_per_s(gpu::Location from, gpu::Location to, const Options& settings) {
    if (from.device < 0) return to.device < 0 ? settings.staged_gb_per_s : settings.h2d_gb_per_s;
    return to.device < 0 ? settings.d2h_gb_per_s : settings.peer_gb_per_s;
}

}  // namespace

Managed& Managed::instance() {
    static Managed& managed = *new Managed();
    return managed;
}

void Managed::add(const std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    ranges_[address(data)] = {bytes, std::vector<gpu::Location>((bytes + kGranule - 1) / kGranule)};
}

void Managed::remove(const std::byte* data) {
    const std::lock_guard lock(mutex_);
    ranges_.erase(address(data));
}

gpu::Location Managed::location(const void* data) const {
    const std::lock_guard lock(mutex_);
    const auto& [begin, range] = containing(ranges_, data);
    return range.granules[(address(data) - begin) / kGranule];
}

void Managed::move(const void* data, std::size_t bytes, gpu::Location to,
                   const std::function<void(std::size_t, gpu::Location)>& moved) {
    if (bytes == 0) return;
    const std::lock_guard lock(mutex_);
    auto& [begin, range] = containing(ranges_, data);
    const std::size_t first = (address(data) - begin) / kGranule;
    const std::size_t last = (address(data) + bytes - 1 - begin) / kGranule;
    for (std::size_t i = first; i <= last; ++i) {
        gpu::Location& at = range.granules[i];
        if (moved && at != to) moved(std::min(kGranule, range.bytes - i * kGranule), at);
        at = to;
    }
}

gpu::Location location(const void* data) { return Managed::instance().location(data); }

}  // namespace waywiser::fake

namespace waywiser::gpu {
namespace {

void check_managed(const std::byte* data, std::size_t bytes, const char* call) {
    if (bytes == 0 || !fake::Ranges::instance().side(data, bytes, call).managed()) {
        fake::reject_value(call);
    }
}

void check_location(Location location, const char* call) {
    if (location.device >= 0) fake::Context::instance().check_device(call, location.device);
}

}  // namespace

// Advice has no effect on what the fake simulates.
void advise(std::byte* data, std::size_t bytes, Advice, Location location) {
    constexpr const char* kCall = "cudaMemAdvise";
    fake::Context::instance().check(kCall);
    fake::Context::instance().count(fake::Point::call, kCall);
    check_managed(data, bytes, kCall);
    check_location(location, kCall);
}

void prefetch_async(std::byte* data, std::size_t bytes, Location to, const Stream& stream) {
    constexpr const char* kCall = "cudaMemPrefetchAsync";
    auto& context = fake::Context::instance();
    const fake::Effects effects = context.pass(fake::Point::copy, kCall, bytes);
    check_managed(data, bytes, kCall);
    check_location(to, kCall);
    auto& thread = fake::thread_of(stream);
    const auto entry = thread.enqueue([=, &context] {
        const fake::Instant began = fake::now();
        context.hang(effects);
        if (effects.lost) context.lose();
        if (context.lost()) return;
        const auto settings = context.options();
        double seconds = settings->latency_seconds + effects.delay_seconds;
        if (!effects.drop) {
            fake::Managed::instance().move(data, bytes, to, [&](std::size_t moved, Location from) {
                seconds += static_cast<double>(moved) / (fake::gb_per_s(from, to, *settings) * 1e9);
            });
        }
        if (effects.flip) data[bytes - 1] ^= std::byte{1};
        fake::wait_until(fake::later(began, seconds));
    });
    if (effects.block) thread.wait(entry);
}

}  // namespace waywiser::gpu
