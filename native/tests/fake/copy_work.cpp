// Common code of copies. They block the host when the real runtime was observed to block it (H200,
// driver 580).
#include "copy_work.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "handles.hpp"

namespace waywiser::fake {
namespace {

// Pageable bytes that the runtime reads during the call; larger copies block until they are read.
constexpr std::size_t kTakenAlong = std::size_t{1} << 20;
// Bytes between GPUs without peer access that do not block.
constexpr std::size_t kStagedFreely = std::size_t{256} << 20;

bool between_gpus(const Copy& copy) {
    return copy.to.on_device() && copy.from.on_device() && copy.to.device != copy.from.device;
}

bool peer_off(const Copy& copy) {
    return between_gpus(copy) &&
           !Context::instance().peer_enabled(copy.to.device, copy.from.device);
}

double gb_per_s(const Copy& copy, const Options& settings) {
    if (copy.to.pageable() || copy.from.pageable() || peer_off(copy))
        return settings.staged_gb_per_s;
    if (between_gpus(copy)) return settings.peer_gb_per_s;
    if (copy.to.on_device() && copy.from.on_device()) return settings.d2d_gb_per_s;
    return copy.to.on_device() ? settings.h2d_gb_per_s : settings.d2h_gb_per_s;
}

// The name of its kind of path in the setting `multiprocessors`.
const char* kind_of(const Copy& copy) {
    if (between_gpus(copy)) return "peer";
    if (copy.to.on_device() && copy.from.on_device()) return "local";
    return copy.to.on_device() ? "h2d" : "d2h";
}

void wait_for_multiprocessors(const Copy& copy) {
    Context& context = Context::instance();
    if (!context.options()->by_multiprocessors.contains(kind_of(copy))) return;
    std::set<int> devices;
    for (const Side& side : {copy.to, copy.from}) {
        if (side.on_device()) devices.insert(side.device);
    }
    context.wait_for_multiprocessors(devices);
}

// The latency between a GPU and page-locked memory on different halves of the machine.
double remote_seconds(const Copy& copy, const Options& settings) {
    if (settings.remote_seconds == 0) return 0;  // assigning blocks to halves takes time itself
    const Side& gpu = copy.to.on_device() ? copy.to : copy.from;
    const Side& host = copy.to.on_device() ? copy.from : copy.to;
    if (!gpu.on_device() || host.type != MemoryType::page_locked) return 0;
    const bool local = settings.half_of_device(gpu.device) == settings.half_of_block(host.block);
    return local ? 0 : settings.remote_seconds;
}

enum class Blocking { none, until_taken, until_done };

Blocking blocking(const Copy& copy, const Effects& effects) {
    if (effects.block) return Blocking::until_done;
    if (!copy.to.on_device()) {
        const bool to_host_directly = copy.from.on_device() && !copy.to.pageable();
        return to_host_directly ? Blocking::none : Blocking::until_done;
    }
    if (copy.from.pageable()) {
        if (!copy.contiguous) return Blocking::until_done;
        return taken_along(copy) ? Blocking::none : Blocking::until_taken;
    }
    return peer_off(copy) && copy.bytes > kStagedFreely ? Blocking::until_done : Blocking::none;
}

void move_bytes(const Copy& copy, const Effects& effects) {
    if (effects.drop || copy.bytes == 0) return;
    copy.move();
    if (effects.flip) *copy.last ^= std::byte{1};
}

// Sets `taken` once only the content of the runtime's own buffer is in flight.
void perform(const Copy& copy, const Effects& effects, const std::function<void()>& taken) {
    Context& context = Context::instance();
    context.hang(effects);
    if (effects.lost) context.lose();
    wait_for_multiprocessors(copy);
    const Instant began = now();
    if (!context.lost()) {
        const auto settings = context.options();
        const double rate = gb_per_s(copy, *settings) * 1e9;
        const Instant end =
            later(began, settings->latency_seconds + remote_seconds(copy, *settings) +
                             effects.delay_seconds + copy.pieces_seconds +
                             static_cast<double>(copy.bytes) / rate);
        move_bytes(copy, effects);
        const auto rest = std::min(copy.bytes, kTakenAlong);
        wait_until(later(end, -static_cast<double>(rest) / rate));
        taken();
        wait_until(end);
    }
    taken();
}

}  // namespace

bool taken_along(const Copy& copy) {
    return copy.contiguous && copy.from.pageable() && copy.to.on_device() &&
           copy.bytes <= kTakenAlong;
}

void execute(const Copy& copy, const Effects& effects) {
    perform(copy, effects, [] {});
}

void enqueue(const Copy& copy, const Effects& effects, const gpu::Stream& stream) {
    auto& thread = thread_of(stream);
    const auto work = [copy, effects] { execute(copy, effects); };
    switch (thread.capturing() ? Blocking::none : blocking(copy, effects)) {
        case Blocking::until_done: thread.wait(thread.enqueue(work)); return;
        case Blocking::until_taken: {
            const auto taken = std::make_shared<Mark>();
            thread.enqueue(
                [copy, effects, taken] { perform(copy, effects, [&] { taken->reach(now()); }); });
            taken->wait();
            return;
        }
        case Blocking::none: thread.enqueue(work); return;
    }
}

}  // namespace waywiser::fake
