// The fake's occupation: work of a stream during which kernels, and copies that multiprocessors
// make, wait.
#include <chrono>

#include "context.hpp"
#include "gpu/gpu.hpp"
#include "handles.hpp"

namespace waywiser::gpu {

using fake::Context;

namespace {

// Shared with the kernel; changed only under the context's lock.
struct Launches {
    std::uint64_t started = 0;
    std::uint64_t released = 0;
    std::uint64_t running = 0;  // 0 for none
};

void occupy(int device, Launches& launches, std::uint64_t launch, double seconds) {
    Context& context = Context::instance();
    const fake::Instant end = fake::later(fake::now(), seconds);
    context.change([&] {
        launches.running = launch;
        context.occupy(device, 1);
    });
    context.hold_until(end, [&] { return launches.released >= launch; });
    context.change([&] {
        launches.running = 0;
        context.occupy(device, -1);
    });
}

}  // namespace

struct Occupation::State {
    explicit State(int device) : stream(device) {}

    Stream stream;
    std::shared_ptr<Launches> launches = std::make_shared<Launches>();
};

Occupation::Occupation(int device) : state_(std::make_unique<State>(device)) {}

Occupation::~Occupation() {
    release();
    fake::thread_of(state_->stream).wait_all();
}

void Occupation::start(double seconds) {
    state_->stream.synchronize();
    Context& context = Context::instance();
    const fake::Effects effects = context.pass(fake::Point::launch, "cudaLaunchKernel");
    const auto launches = state_->launches;
    const int device = state_->stream.device();
    std::uint64_t launch = 0;
    context.change([&] { launch = ++launches->started; });
    fake::thread_of(state_->stream).enqueue([=] {
        Context& held = Context::instance();
        held.hang(effects);
        if (effects.lost) held.lose();
        if (!held.lost()) occupy(device, *launches, launch, seconds);
    });
}

void Occupation::release() noexcept {
    Context::instance().change([&] { state_->launches->released = state_->launches->started; });
}

bool Occupation::complete() const {
    Context& context = Context::instance();
    if (!context.options()->occupied) return false;
    bool running = false;
    context.change([&] {
        const Launches& launches = *state_->launches;
        running = launches.running != 0 && launches.running == launches.started;
    });
    return running;
}

}  // namespace waywiser::gpu
