// Copies of contiguous bytes in the fake: a real memcpy, at a simulated bandwidth.
#include <memory>
#include <vector>

#include "copy_work.hpp"
#include "handles.hpp"
#include "managed.hpp"
#include "many_bytes.hpp"

namespace waywiser::gpu {
namespace {

using fake::Context;
using fake::Copy;
using fake::Effects;
using fake::Instant;
using fake::Point;
using fake::Side;

Copy known(void* destination, const void* source, std::size_t bytes, const char* call) {
    const auto& ranges = fake::Ranges::instance();
    Copy copy{.bytes = bytes,
              .to = ranges.side(destination, bytes, call),
              .from = ranges.side(source, bytes, call),
              .move = [=] { test::copy_bytes(destination, source, bytes); }};
    if (bytes != 0) copy.last = static_cast<std::byte*>(destination) + bytes - 1;
    return copy;
}

void enqueue(Copy copy, const void* source, const Effects& effects, const Stream& stream) {
    // A graph reads its source when it is launched.
    if (fake::taken_along(copy) && copy.bytes != 0 && !fake::thread_of(stream).capturing()) {
        const auto* bytes = static_cast<const std::byte*>(source);
        const auto along = std::make_shared<std::vector<std::byte>>(bytes, bytes + copy.bytes);
        std::byte* const begin = copy.last + 1 - copy.bytes;
        copy.move = [along, begin] { test::copy_bytes(begin, along->data(), along->size()); };
    }
    fake::enqueue(copy, effects, stream);
}

}  // namespace

void copy_async(void* destination, const void* source, std::size_t bytes, const Stream& stream) {
    constexpr const char* kCall = "cudaMemcpyAsync";
    const Effects effects = Context::instance().pass(Point::copy, kCall, bytes);
    enqueue(known(destination, source, bytes, kCall), source, effects, stream);
}

void copy_peer_async(void* destination, int destination_device, const void* source,
                     int source_device, std::size_t bytes, const Stream& stream) {
    constexpr const char* kCall = "cudaMemcpyPeerAsync";
    const Effects effects = Context::instance().pass(Point::copy, kCall, bytes);
    const Copy copy = known(destination, source, bytes, kCall);
    const auto belies = [&](const Side& side, int device) {
        return bytes != 0 && (!side.on_device() || side.device != device);
    };
    if (belies(copy.to, destination_device) || belies(copy.from, source_device)) {
        fake::reject_device(kCall);
    }
    enqueue(copy, source, effects, stream);
}

void copy_sync(void* destination, const void* source, std::size_t bytes, int device) {
    constexpr const char* kCall = "cudaMemcpy";
    Context::instance().enter(kCall, device);
    const Effects effects = Context::instance().pass(Point::copy, kCall, bytes);
    // The default stream does not wait for other streams, so the caller's thread can run it.
    fake::execute(known(destination, source, bytes, kCall), effects);
    Context::instance().check(kCall);
}

void fill_async(void* destination, unsigned char value, std::size_t bytes, const Stream& stream) {
    constexpr const char* kCall = "cudaMemsetAsync";
    const Effects effects = Context::instance().pass(Point::fill, kCall);
    const Side side = fake::Ranges::instance().side(destination, bytes, kCall);
    if (side.pageable() && bytes != 0) {
        fake::reject_value(kCall);
    }
    const int device = stream.device();
    fake::thread_of(stream).enqueue([=] {
        Context& context = Context::instance();
        context.hang(effects);
        if (effects.lost) context.lose();
        if (context.options()->by_multiprocessors.contains("fill")) {
            context.wait_for_multiprocessors({device});
        }
        if (context.lost()) return;
        const Instant began = fake::now();
        if (bytes != 0) test::fill_bytes(destination, value, bytes);
        if (side.managed()) fake::Managed::instance().move(destination, bytes, {.device = device});
        const auto settings = context.options();
        fake::wait_until(
            fake::later(began, settings->latency_seconds +
                                   static_cast<double>(bytes) / (settings->d2d_gb_per_s * 1e9)));
    });
}

}  // namespace waywiser::gpu
