#include "context.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ostream>
#include <stdexcept>

#include "gpu/gpu.hpp"
#include "ranges.hpp"

namespace waywiser::fake {
namespace {

constexpr int kNotSupported = 801;
constexpr int kOutOfMemory = 2;
constexpr int kNotInitialized = 3;
constexpr int kNoDevice = 100;
constexpr int kIllegalAddress = 700;

Options from_environment() {
    const char* text = std::getenv("WAYWISER_FAKE");
    try {
        return parse_options(text == nullptr ? "" : text);
    } catch (const std::invalid_argument& error) {
        Options options;
        options.unavailable = error.what();
        return options;
    }
}

[[noreturn]] void throw_lost(const char* call) {
    throw gpu::Error(gpu::Failure::sticky, call, kIllegalAddress, "cudaErrorIllegalAddress");
}

}  // namespace

Context& Context::instance() {
    static Context& context = *new Context();
    return context;
}

Context::Context() : options_(std::make_shared<const Options>(from_environment())) {}

void Context::configure(Options options) {
    change([&] {
        options_ = std::make_shared<const Options>(std::move(options));
        passed_.fill(0);
        peers_.clear();
        entered_.clear();
        lost_ = false;
        user_ = 0;
        once_claimed_ = false;
        opening_ignored_ = false;
        ++generation_;
    });
}

std::shared_ptr<const Options> Context::options() const {
    const std::lock_guard lock(mutex_);
    return options_;
}

Counts Context::counts() const {
    const std::lock_guard lock(mutex_);
    const auto of = [&](Point point) { return passed_[static_cast<std::size_t>(point)]; };
    return {.copies = of(Point::copy),
            .fills = of(Point::fill),
            .launches = of(Point::launch),
            .events = of(Point::event),
            .allocations = of(Point::alloc),
            .synchronisations = of(Point::sync),
            .calls = of(Point::call),
            .queries = of(Point::query)};
}

bool Context::forked() const {
    const pid_t known = user_;
    return known != 0 && known != getpid();
}

void Context::note_use() const {
    pid_t none = 0;
    user_.compare_exchange_strong(none, getpid());
}

void Context::check(const char* call) const {
    if (forked()) {
        throw gpu::Error(gpu::Failure::unavailable, call, kNotInitialized,
                         "cudaErrorInitializationError");
    }
    const auto settings = options();
    if (!settings->unavailable.empty() || settings->devices == 0) {
        throw gpu::Error(gpu::Failure::unavailable, call, kNoDevice, "cudaErrorNoDevice");
    }
    note_use();
    if (lost_) throw_lost(call);
}

void Context::check_device(const char* call, int device) const {
    check(call);
    if (device < 0 || device >= options()->devices) {
        reject_device(call);
    }
}

void Context::enter(const char* call, int device) {
    check_device(call, device);
    count(Point::call, call);
    current() = device;
    const std::lock_guard lock(mutex_);
    entered_.insert(device);
}

int& Context::current() {
    thread_local int device = -1;
    return device;
}

std::set<int> Context::entered() const {
    const std::lock_guard lock(mutex_);
    return entered_;
}

void Context::count(Point point, const char* call) {
    std::unique_lock lock(mutex_);
    strike_at_once(lock, point, ++passed_[static_cast<std::size_t>(point)], call);
}

void Context::strike_at_once(std::unique_lock<std::mutex>& lock, Point point, std::size_t count,
                             const char* call) {
    if (strikes(options_->fail, point, count)) {
        throw gpu::Error(gpu::Failure::other, call, kNotSupported, "cudaErrorNotSupported");
    }
    if (strikes(options_->sticky, point, count)) {
        lock.unlock();
        lose();
        throw_lost(call);
    }
}

Effects Context::pass(Point point, const char* call, std::size_t bytes) {
    check(call);
    count(Point::call, call);
    std::unique_lock lock(mutex_);
    const Options& settings = *options_;
    if (point == Point::copy && settings.only_bytes && *settings.only_bytes != bytes) return {};
    const std::size_t count = ++passed_[static_cast<std::size_t>(point)];
    const auto now = [&](const std::optional<Strike>& strike) {
        return strikes(strike, point, count);
    };
    if (now(settings.crash)) std::raise(SIGSEGV);
    if (now(settings.out_of_memory)) {
        throw gpu::Error(gpu::Failure::out_of_memory, call, kOutOfMemory,
                         "cudaErrorMemoryAllocation");
    }
    strike_at_once(lock, point, count, call);
    return {.lost = now(settings.lost),
            .hang = now(settings.hang),
            .generation = generation_,
            .flip = now(settings.flip),
            .drop = now(settings.drop),
            .block = now(settings.block),
            .delay_seconds = now(settings.delay) ? settings.delay_seconds : 0};
}

bool Context::strikes(const std::optional<Strike>& strike, Point point, std::size_t count) {
    return strike && strike->point == point && strike->when.matches(count) && claims_once();
}

// One of all processes that share the setting creates the file, and only that one has the fault.
bool Context::claims_once() {
    if (options_->once_file.empty() || once_claimed_) return true;
    const int file =
        open(options_->once_file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) return false;
    close(file);
    once_claimed_ = true;
    return true;
}

void Context::lose() {
    change([&] { lost_ = true; });
}

bool Context::ignores_opening() {
    const GateFault fault = options_->gate;
    if (fault == GateFault::none) return false;
    if (fault == GateFault::first_open_lost && opening_ignored_) return false;
    if (!claims_once()) return false;
    opening_ignored_ = true;
    return true;
}

void Context::enable_peer(int from, int to) {
    const std::lock_guard lock(mutex_);
    peers_.emplace(from, to);
}

bool Context::peer_enabled(int one, int other) const {
    const std::lock_guard lock(mutex_);
    return peers_.contains({one, other}) || peers_.contains({other, one});
}

void Context::hang(const Effects& effects) {
    if (!effects.hang) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return generation_ != effects.generation; });
}

void Context::wait_for_multiprocessors(const std::set<int>& devices) {
    hold([&] {
        return std::ranges::none_of(devices, [&](int device) {
            const auto found = occupied_.find(device);
            return found != occupied_.end() && found->second > 0;
        });
    });
}

Living& living() {
    static Living& all = *new Living();
    return all;
}

void configure(const std::string& text) { Context::instance().configure(parse_options(text)); }
void reset() { configure(""); }

Live live() {
    const Living& now = living();
    return {.streams = now.streams,
            .events = now.events,
            .device_buffers = now.device_buffers,
            .host_buffers = now.host_buffers,
            .registrations = now.registrations,
            .gates = now.gates,
            .pool_buffers = now.pool_buffers,
            .mapped_buffers = now.mapped_buffers,
            .foreign_buffers = now.foreign_buffers,
            .managed_buffers = now.managed_buffers,
            .async_allocations = now.async_allocations,
            .graphs = now.graphs,
            .executable_graphs = now.executable_graphs};
}

std::ostream& operator<<(std::ostream& stream, const Live& live) {
    return stream << live.streams << " streams, " << live.events << " events, "
                  << live.device_buffers << " device buffers, " << live.host_buffers
                  << " host buffers, " << live.registrations << " registrations, " << live.gates
                  << " gates, " << live.pool_buffers << " pool buffers, " << live.mapped_buffers
                  << " mapped buffers, " << live.foreign_buffers << " foreign buffers, "
                  << live.managed_buffers << " managed buffers, " << live.async_allocations
                  << " stream-ordered allocations, " << live.graphs << " graphs, "
                  << live.executable_graphs << " executable graphs";
}

Counts counts() { return Context::instance().counts(); }

int current_device() { return Context::current(); }
void set_current_device(int device) { Context::current() = device; }

std::set<int> contexts() { return Context::instance().entered(); }

}  // namespace waywiser::fake
