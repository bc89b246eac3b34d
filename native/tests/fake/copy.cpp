// Copies of the fake: the real memcpy, at a simulated rate, blocking the host where the real
// runtime was seen to block it (H200, driver 580).
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "context.hpp"
#include "gpu/gpu.hpp"
#include "handles.hpp"
#include "ranges.hpp"

namespace waywiser::gpu {
namespace {

using fake::Context;
using fake::Effects;
using fake::Instant;
using fake::Options;
using fake::Point;
using fake::Side;

// Pageable bytes that the runtime takes along at the call; more block it until they are taken.
constexpr std::size_t kTakenAlong = std::size_t{1} << 20;
// Bytes between GPUs without peer access that pass without blocking.
constexpr std::size_t kStagedFreely = std::size_t{256} << 20;

constexpr int kInvalidValue = 1;
constexpr int kInvalidDevice = 101;

struct Copy {
    std::byte* destination;
    const std::byte* source;
    std::size_t bytes;
    Side to;
    Side from;
};

Copy known(void* destination, const void* source, std::size_t bytes, const char* call) {
    const auto& ranges = fake::Ranges::instance();
    return {static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), bytes,
            ranges.side(destination, bytes, call), ranges.side(source, bytes, call)};
}

bool between_gpus(const Copy& copy) {
    return copy.to.on_device() && copy.from.on_device() && copy.to.device != copy.from.device;
}

bool peer_off(const Copy& copy) {
    return between_gpus(copy) &&
           !Context::instance().peer_enabled(copy.to.device, copy.from.device);
}

double gb_per_s(const Copy& copy, const Options& told) {
    if (copy.to.pageable() || copy.from.pageable() || peer_off(copy)) return told.staged_gb_per_s;
    if (between_gpus(copy)) return told.peer_gb_per_s;
    if (copy.to.on_device() && copy.from.on_device()) return told.d2d_gb_per_s;
    return copy.to.on_device() ? told.h2d_gb_per_s : told.d2h_gb_per_s;
}

enum class Blocking { none, until_taken, until_done };

Blocking blocking(const Copy& copy, const Effects& effects) {
    if (effects.block) return Blocking::until_done;
    if (!copy.to.on_device()) {
        const bool to_host_directly = copy.from.on_device() && !copy.to.pageable();
        return to_host_directly ? Blocking::none : Blocking::until_done;
    }
    if (copy.from.pageable()) {
        return copy.bytes <= kTakenAlong ? Blocking::none : Blocking::until_taken;
    }
    return peer_off(copy) && copy.bytes > kStagedFreely ? Blocking::until_done : Blocking::none;
}

void move_bytes(const Copy& copy, const Effects& effects) {
    if (effects.drop || copy.bytes == 0) return;
    std::memcpy(copy.destination, copy.source, copy.bytes);
    if (effects.flip) copy.destination[copy.bytes - 1] ^= std::byte{1};
}

// What the stream does. `taken` is told once no more than the runtime's own buffer is under way.
void execute(const Copy& copy, const Effects& effects, const std::function<void()>& taken) {
    Context& context = Context::instance();
    const Instant began = fake::now();
    if (effects.hang) context.hang();
    if (effects.lost) context.lose();
    if (!context.lost()) {
        const auto told = context.options();
        const double rate = gb_per_s(copy, *told) * 1e9;
        const Instant end = fake::later(began, told->latency_seconds + effects.delay_seconds +
                                                   static_cast<double>(copy.bytes) / rate);
        move_bytes(copy, effects);
        const auto rest = std::min(copy.bytes, kTakenAlong);
        fake::last_until(fake::later(end, -static_cast<double>(rest) / rate));
        taken();
        fake::last_until(end);
    }
    taken();
}

void enqueue(Copy copy, const Effects& effects, const Stream& stream) {
    auto& thread = fake::thread_of(stream);
    switch (blocking(copy, effects)) {
        case Blocking::until_done:
            thread.wait(thread.enqueue([copy, effects] { execute(copy, effects, [] {}); }));
            return;
        case Blocking::until_taken: {
            const auto taken = std::make_shared<fake::Mark>();
            thread.enqueue([copy, effects, taken] {
                execute(copy, effects, [&] { taken->reach(fake::now()); });
            });
            taken->wait();
            return;
        }
        case Blocking::none: break;
    }
    if (!copy.from.pageable() || copy.bytes == 0) {
        thread.enqueue([copy, effects] { execute(copy, effects, [] {}); });
        return;
    }
    const auto along =
        std::make_shared<std::vector<std::byte>>(copy.source, copy.source + copy.bytes);
    copy.source = along->data();
    thread.enqueue([copy, effects, along] { execute(copy, effects, [] {}); });
}

}  // namespace

void copy_async(void* destination, const void* source, std::size_t bytes, const Stream& stream) {
    constexpr const char* kCall = "cudaMemcpyAsync";
    const Effects effects = Context::instance().pass(Point::copy, kCall, bytes);
    enqueue(known(destination, source, bytes, kCall), effects, stream);
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
        throw Error(Failure::other, kCall, kInvalidDevice, "cudaErrorInvalidDevice");
    }
    enqueue(copy, effects, stream);
}

void copy_sync(void* destination, const void* source, std::size_t bytes, int device) {
    constexpr const char* kCall = "cudaMemcpy";
    Context::instance().check_device(kCall, device);
    const Effects effects = Context::instance().pass(Point::copy, kCall, bytes);
    // The default stream waits for none of ours, so the caller's thread can be its thread.
    execute(known(destination, source, bytes, kCall), effects, [] {});
    Context::instance().check(kCall);
}

void fill_async(void* destination, unsigned char value, std::size_t bytes, const Stream& stream) {
    constexpr const char* kCall = "cudaMemsetAsync";
    const Effects effects = Context::instance().pass(Point::fill, kCall);
    if (fake::Ranges::instance().side(destination, bytes, kCall).pageable() && bytes != 0) {
        throw Error(Failure::other, kCall, kInvalidValue, "cudaErrorInvalidValue");
    }
    fake::thread_of(stream).enqueue([=] {
        Context& context = Context::instance();
        const Instant began = fake::now();
        if (effects.hang) context.hang();
        if (effects.lost) context.lose();
        if (context.lost()) return;
        if (bytes != 0) std::memset(destination, value, bytes);
        const auto told = context.options();
        fake::last_until(fake::later(
            began,
            told->latency_seconds + static_cast<double>(bytes) / (told->d2d_gb_per_s * 1e9)));
    });
}

}  // namespace waywiser::gpu
