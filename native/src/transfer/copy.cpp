#include "transfer/copy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include "host/pages.hpp"
#include "transfer/describe.hpp"
#include "transfer/ordering.hpp"
#include "transfer/policy.hpp"
#include "waywiser/transfer.h"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kRelayFrom = std::size_t{16} << 20;
constexpr std::size_t kSmallestChunk = std::size_t{256} << 10;
constexpr std::size_t kLargestChunk = std::size_t{4} << 20;
// Slots that CPUs fill should stay in their caches, and five of them per thread keep the link busy
// while a thread is late (measured on H200, docs/transfer.md).
constexpr std::size_t kFilledChunk = std::size_t{1} << 20;
constexpr std::size_t kFilledSlots = 5;
constexpr std::size_t kDrainedChunk = std::size_t{2} << 20;
constexpr std::size_t kDrainedSlots = 20;  // for all threads, two to five each
constexpr std::size_t kPoliteSlots = 3;
constexpr std::size_t kRelayChunk = std::size_t{8} << 20;
constexpr std::size_t kSlotsOfRelays = 4;
constexpr std::size_t kPageableRelaySlots = 4;
constexpr std::size_t kSmallestPageableRelay = std::size_t{1} << 20;
constexpr std::size_t kChunksOfRelays = 32;  // minimum, so that all links end together
// Minimum number of chunks of a copy: the link is idle while the first is filled and the last
// drained.
constexpr std::size_t kFewestChunks = 32;
constexpr std::size_t kThreadsBetweenGpus = 1;
constexpr std::size_t kSlotsBetweenGpus = 8;
constexpr std::size_t kChunksBetweenGpus = 8;
constexpr std::size_t kSmallestBetweenGpus = std::size_t{2} << 20;
// Threads for one link: more do not help, and another GPU's link may need them.
constexpr std::size_t kThreadsPerLink = 10;
// A file needs more: copying from the page cache costs a CPU 50 % more time.
constexpr std::size_t kThreadsPerFile = 12;
constexpr auto kPoll = std::chrono::microseconds(20);  // polling interval with a time limit
// Before that the calling thread polls and yields, as the runtime does while it waits for a stream:
// a sleep of 20 us takes 100 us and more on a virtual machine. It polls for as long as 2 GiB take
// over a PCIe 5.0 link.
constexpr auto kBetweenLooks = std::chrono::microseconds(5);
constexpr auto kLooking = std::chrono::milliseconds(50);
constexpr auto kLookingAtStream = std::chrono::microseconds(500);

bool overlap(const void* a, const void* b, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(a);
    const auto second = reinterpret_cast<std::uintptr_t>(b);
    return first < second + bytes && second < first + bytes;
}

int operand_gpu(const Side& to, const Side& from) {
    return to.end.gpu >= 0 ? to.end.gpu : from.end.gpu;
}

bool gpu_reaches(const Side& side) {
    return side.uniform && (side.end.kind == End::Kind::device || side.end.pinned) && !side.managed;
}

void check_arguments(const void* to, const void* from, std::size_t bytes) {
    check_range(to, bytes, "copy", "to");
    check_range(from, bytes, "copy", "from");
    if (overlap(to, from, bytes)) {
        throw InvalidCopy("copy: source and destination overlap in " + std::to_string(bytes) +
                          " bytes: copy through a third buffer");
    }
}

struct Sides {
    Side to, from;
};

Sides sides_of(void* to, const void* from, std::size_t bytes) {
    return {.to = side_of(to, bytes), .from = side_of(const_cast<void*>(from), bytes)};
}

// Whether the runtime copies so few bytes itself. Below the least size of another method the memory
// need not be known. A policy can lower that size for some memory only: then the memory decides,
// and `known` keeps what both sides are. One side on a GPU can be enough, since queries take time.
bool is_small(const Engine& engine, void* to, const void* from, std::size_t bytes,
              std::optional<Sides>& known) {
    if (bytes < engine.plain_below()) return true;
    if (bytes >= kPlainBelow) return false;
    const bool plain_with_gpu = bytes < engine.plain_below_with_gpu();
    const Side into = side_of(to, bytes);
    if (plain_with_gpu && into.end.gpu >= 0) return true;
    const Side out = side_of(const_cast<void*>(from), bytes);
    if (plain_with_gpu && out.end.gpu >= 0) return true;
    known = Sides{.to = into, .from = out};
    const bool between_gpus = into.end.gpu >= 0 && out.end.gpu >= 0 && into.end.gpu != out.end.gpu;
    return into.uniform && out.uniform && !between_gpus &&
           choose(engine, into, out, bytes).method == Choice::Method::plain;
}

// A fast path for small copies, without queries that cannot change the method. Returns false,
// without copying, if it does not apply.
bool copy_small(const Engine& engine, void* to, const void* from, std::size_t bytes,
                const CallerStream& stream, std::optional<Sides>& known) {
    const std::size_t polite = engine.options().polite_bytes;
    return bytes < kPlainBelow && (polite == 0 || bytes <= polite) && !stream.none &&
           (stream.gpu < 0 ? gpu::has_context() : gpu::has_context_of(stream.gpu)) &&
           !gpu::capturing(stream.handle) && to != nullptr && from != nullptr &&
           !overlap(to, from, bytes) && is_small(engine, to, from, bytes, known) &&
           gpu::try_copy_on(to, from, bytes, stream.handle);
}

// --- the policy ------------------------------------------------------------------------------

bool is_on_gpu(const Side& side) { return side.end.kind == End::Kind::device; }

PolicyMemory policy_memory(const Side& side) {
    switch (side.end.kind) {
        case End::Kind::device: return PolicyMemory::device;
        case End::Kind::file: return PolicyMemory::file;
        default: return side.end.pinned ? PolicyMemory::pinned : PolicyMemory::pageable;
    }
}

// What the policy says about a copy. nullptr: what the library does without one.
const PolicyDecision* decision(const Engine& engine, PolicyKey key, std::size_t bytes) {
    const PolicyTable& policy = *engine.policy();
    const EngineOptions& options = engine.options();
    const bool from_gpu = key.from == PolicyMemory::device;
    const bool to_gpu = key.to == PolicyMemory::device;
    const PolicyDecision* found = nullptr;
    if (!options.relays.empty() && from_gpu != to_gpu) {
        PolicyKey with_relays = key;
        with_relays.peers_idle = true;
        found = policy.copy(with_relays, bytes);
        if (found == nullptr && bytes >= kRelayFrom) return nullptr;
    }
    if (found == nullptr) found = policy.copy(key, bytes);
    if (found == nullptr || found->method == PolicyMethod::standard) return nullptr;
    const bool is_polite = options.polite_bytes == 0 || bytes <= options.polite_bytes;
    const bool over_link = from_gpu || to_gpu;
    if (found->method == PolicyMethod::plain && over_link && !is_polite) return nullptr;
    return found;
}

const PolicyDecision* decision(const Engine& engine, const Side& to, const Side& from,
                               std::size_t bytes) {
    if (engine.policy() == nullptr || engine.options().plain) return nullptr;
    PolicyKey key{.from = policy_memory(from), .to = policy_memory(to)};
    if (is_on_gpu(to) && is_on_gpu(from)) {
        key.relation = to.end.gpu == from.end.gpu                   ? PolicyRelation::same
                       : engine.are_peers(to.end.gpu, from.end.gpu) ? PolicyRelation::peers
                                                                    : PolicyRelation::no_peers;
    }
    if (key.to == PolicyMemory::pageable && bytes >= engine.plain_below()) {
        PolicyKey fresh = key;
        fresh.to = PolicyMemory::fresh;
        const bool known = engine.policy()->has(fresh);
        // The defaults create pages in their own way.
        const bool by_default = is_on_gpu(from) && bytes >= kPlainBelow;
        if ((known || by_default) && is_fresh(to.end.data, bytes)) {
            if (!known) return nullptr;
            key = fresh;
        }
    }
    return decision(engine, key, bytes);
}

std::string text_of_seconds(double seconds) {
    const bool is_short = seconds < 1e-3;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g %s", seconds * (is_short ? 1e6 : 1e3),
                  is_short ? "us" : "ms");
    return text.data();
}

std::string text_of_bytes(std::uint64_t bytes) {
    constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    auto value = static_cast<double>(bytes);
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g %s", value, kUnits[unit]);
    return text.data();
}

// What the policy expects of a method.
std::string expectation(const PolicyDecision& made, const std::string& file) {
    std::string text = "; policy " + file;
    return text + ": " + made.row->executor + " took " + text_of_seconds(made.row->seconds) +
           " (95 %: " + text_of_seconds(made.row->low) + " to " + text_of_seconds(made.row->high) +
           ") for " + text_of_bytes(made.row->bytes);
}

struct Prepared {
    Side to, from;
    Ordering order;
    Choice choice;
};

// `known`: both sides, if they were queried already.
Prepared prepare(Engine& engine, void* to, const void* from, std::size_t bytes,
                 const CallerStream& stream, const std::optional<Sides>& known = std::nullopt) {
    check_arguments(to, from, bytes);
    const Sides sides = known ? *known : sides_of(to, from, bytes);
    Prepared ready;
    ready.to = sides.to;
    ready.from = sides.from;
    ready.order = ordering(engine, stream, operand_gpu(ready.to, ready.from));
    const int to_gpu = ready.to.end.gpu;
    const int from_gpu = ready.from.end.gpu;
    if (to_gpu >= 0 && from_gpu >= 0 && to_gpu != from_gpu) engine.enable_peers(to_gpu, from_gpu);
    ready.choice = choose(engine, ready.to, ready.from, bytes);
    if (ready.order.capturing) {
        if (!gpu_reaches(ready.to) || !gpu_reaches(ready.from)) reject_capture();
        ready.choice.method = Choice::Method::plain;
    }
    return ready;
}

std::shared_ptr<Job> job_of(Engine& engine, const Prepared& ready, std::size_t bytes) {
    return std::make_shared<ChunkedCopy>(engine, ready.to.end, ready.from.end, bytes,
                                         ready.choice.shape);
}

Side file_memory(Engine& engine, void* data, std::size_t bytes, const char* call,
                 const char* argument) {
    check_range(data, bytes, call, argument);
    Side side =
        engine.machine().gpus.empty() ? Side{.end = End::host(data, false)} : side_of(data, bytes);
    if (side.managed) side.end = End::host(data, false);  // CPUs can access it
    return side;
}

// `reads`: the file is the source.
CopyShape file_shape(Engine& engine, std::size_t bytes, const Side& memory, bool reads) {
    const Side file{.end = End::of_file(-1, 0)};
    const PolicyDecision* made =
        decision(engine, reads ? memory : file, reads ? file : memory, bytes);
    if (made != nullptr && made->method == PolicyMethod::chunked)
        return made->shape_for(memory.end.gpu);
    const End& to = reads ? memory.end : file.end;
    const End& from = reads ? file.end : memory.end;
    CopyShape shape = default_shape(to, from, bytes, engine.options().threads);
    if (engine.options().plain) {
        shape.threads = 1;
        shape.direct_io = false;
    }
    return shape;
}

// After a failure: the runtime does not use the caller's memory any more, unless its context is
// lost.
void drain(const gpu::Stream& stream) noexcept {
    try {
        stream.synchronize();
    } catch (const gpu::Error&) {
    }
}

// The stream that a copy was ordered in: a default stream of the current GPU means that of the
// operand's GPU if none is current.
CallerStream stream_of_copy(const CallerStream& stream, void* to, const void* from,
                            std::size_t bytes) {
    CallerStream used = stream;
    if (stream.none || !stream.is_default() || stream.gpu >= 0 || gpu::has_context()) return used;
    used.gpu = operand_gpu(side_of(to, bytes), side_of(const_cast<void*>(from), bytes));
    return used;
}

struct FileCopy {
    std::shared_ptr<Job> job;
    Ordering order;
};

FileCopy prepare_file(Engine& engine, const End& file, void* data, std::size_t bytes, bool reads,
                      const CallerStream& stream) {
    const char* const call = reads ? "read" : "write";
    constexpr std::uint64_t kLastOffset = std::numeric_limits<std::int64_t>::max();
    if (file.offset > kLastOffset || bytes > kLastOffset - file.offset) {
        throw InvalidCopy(std::string(call) + ": " + std::to_string(bytes) + " bytes from offset " +
                          std::to_string(file.offset) +
                          " go past what a file can have (2^63 - 1): pass a smaller offset");
    }
    const Side memory = file_memory(engine, data, bytes, call, reads ? "to" : "from");
    FileCopy made{.job = nullptr, .order = ordering(engine, stream, memory.end.gpu)};
    if (made.order.capturing) {
        throw NotSupported(
            "the stream is being captured: files cannot be read or written then; do it before the "
            "capture");
    }
    End end = memory.end;
    if (end.kind == End::Kind::host) end.pinned = false;  // the CPU moves the bytes
    made.job = std::make_shared<ChunkedCopy>(engine, reads ? end : file, reads ? file : end, bytes,
                                             file_shape(engine, bytes, memory, reads));
    return made;
}

}  // namespace

// --- started copies --------------------------------------------------------------------------

namespace {

// Waits for the event, at most `seconds` (negative: without limit). `made`: when the event was
// recorded; polling time counts from then, over all waits.
bool wait_for_event(const gpu::Event& event, double seconds,
                    std::chrono::steady_clock::time_point made) {
    if (seconds < 0) {
        event.synchronize();
        return true;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto until = start + std::chrono::duration<double>(seconds);
    while (!event.done()) {
        const auto now = std::chrono::steady_clock::now();
        if (now >= until) return false;
        if (now - made < kLooking) {
            do {
                std::this_thread::yield();
            } while (std::chrono::steady_clock::now() - now < kBetweenLooks);
        } else {
            std::this_thread::sleep_for(kPoll);
        }
    }
    return true;
}

}  // namespace

bool WatchedEvent::ended() const noexcept {
    try {
        return event_->done();
    } catch (const gpu::Error&) {
        return true;
    }
}

std::vector<std::shared_ptr<Job>> WatchedEvent::watches() {
    if (!watched_) return {};
    const std::lock_guard lock(mutex_);
    return watches_;
}

bool WatchedEvent::done() {
    return ended() && std::ranges::all_of(watches(), [](const auto& job) { return job->done(); });
}

bool WatchedEvent::wait(double seconds) {
    const auto start = std::chrono::steady_clock::now();
    try {
        if (!wait_for_event(*event_, seconds, made_)) return false;
    } catch (const gpu::Error&) {
        try {
            event_->synchronize();  // it could not be queried: nothing is in flight after this
        } catch (const gpu::Error&) {
        }
        for (const auto& job : watches()) job->wait();
        throw;
    }
    for (const auto& job : watches()) {
        const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
        if (!job->wait(seconds < 0 ? seconds : std::max(seconds - gone.count(), 0.0))) return false;
    }
    return true;
}

void WatchedEvent::notify(int descriptor, Engine& engine) {
    if (ended()) return write_notifications({descriptor});
    // A job of no bytes starts, and ends, with the event.
    const auto watch = std::make_shared<Job>(0, 1, 1);
    watch->notify(descriptor);
    const std::lock_guard lock(mutex_);
    watched_ = true;  // first: a thread that sees the end of the event waits here
    watches_.reserve(watches_.size() + 1);
    try {
        engine.start(watch, event_);
    } catch (const Cancelled&) {  // the engine was stopped
        return write_notifications({descriptor});
    }
    watches_.push_back(watch);
}

bool Started::done() const {
    if (job_) return job_->done();
    return !plain_ || plain_->done();
}

bool Started::wait(double seconds) const {
    if (plain_) return plain_->wait(seconds);
    if (!job_) return true;
    if (!job_->wait(seconds)) return false;
    job_->rethrow();
    return true;
}

std::size_t Started::moved() const noexcept {
    if (job_) {
        const std::size_t moved = job_->moved();
        return moved > 0 || job_->done() ? bytes_ + moved : 0;
    }
    try {
        return !plain_ || plain_->event().done() ? bytes_ : 0;
    } catch (const gpu::Error&) {
        return 0;
    }
}

bool Started::order(const gpu::Stream& stream, double seconds) const {
    if (job_) return job_->order(stream, seconds);
    if (plain_) gpu::wait(stream, plain_->event());
    return true;
}

void Started::notify(int descriptor, Engine& engine) const {
    if (job_) return job_->notify(descriptor);
    if (plain_) return plain_->notify(descriptor, engine);
    write_notifications({descriptor});
}

bool Started::order(const Engine& engine, const CallerStream& stream, double seconds) const {
    if (stream.none) return wait(seconds);
    const Ordering known = ordering(engine, stream, 0);
    if (known.capturing) {
        throw NotSupported(
            "the stream is being captured: a graph cannot wait for a transfer that is not part of "
            "it; order the stream before the capture");
    }
    return known.stream ? order(*known.stream, seconds) : wait(seconds);
}

CallerStream CallerStream::of(void* given) {
    constexpr std::uintptr_t kKind = 0xff;
    constexpr std::uintptr_t kMostGpus = 256;
    const auto value = reinterpret_cast<std::uintptr_t>(given);
    if (given == WAYWISER_NO_STREAM) return {.none = true};
    const std::uintptr_t kind = value & kKind;
    const std::uintptr_t gpu = value >> 8;
    if ((kind == 1 || kind == 2) && gpu >= 1 && gpu <= kMostGpus) {
        return {reinterpret_cast<void*>(kind), static_cast<int>(gpu) - 1};
    }
    return {given, -1};
}

bool CallerStream::is_default() const { return reinterpret_cast<std::uintptr_t>(handle) <= 2; }
bool CallerStream::is_legacy() const { return reinterpret_cast<std::uintptr_t>(handle) <= 1; }

// --- method ----------------------------------------------------------------------------------

void check_range(const void* data, std::size_t bytes, const char* call, const char* argument) {
    if (data == nullptr) {
        throw InvalidCopy(std::string(call) + ": the argument " + argument +
                          " is a null pointer: pass memory of " + std::to_string(bytes) + " bytes");
    }
    if (reinterpret_cast<std::uintptr_t>(data) >
        std::numeric_limits<std::uintptr_t>::max() - bytes) {
        throw InvalidCopy(std::string(call) + ": " + std::to_string(bytes) + " bytes from " +
                          argument + " exceed the address space: check the number of bytes");
    }
}

Side side_of(void* data, std::size_t bytes) {
    const Range range = range_of(data, bytes);
    Side side{.end = End::host(data, false), .managed = false, .uniform = range.uniform};
    switch (range.kind) {
        case gpu::PointerKind::pageable: break;
        case gpu::PointerKind::pinned: side.end.pinned = range.uniform; break;
        case gpu::PointerKind::device: side.end = End::device(data, range.device); break;
        case gpu::PointerKind::managed: side.managed = true; break;
    }
    return side;
}

namespace {

// Through pinned slots that CPUs fill or drain.
CopyShape slot_shape(std::size_t bytes, std::size_t threads, bool from_gpu) {
    CopyShape shape;
    threads = std::clamp<std::size_t>(threads, 1, kThreadsPerLink);
    shape.chunk = std::clamp(std::bit_floor(std::max<std::size_t>(bytes / kFewestChunks, 1)),
                             kSmallestChunk, from_gpu ? kDrainedChunk : kFilledChunk);
    shape.threads = threads;
    shape.slots = from_gpu ? std::clamp<std::size_t>(kDrainedSlots / threads, 2, 5) : kFilledSlots;
    // Non-temporal stores save the CPUs a third of the memory traffic. But the GPU reads the last
    // stores faster from a cache.
    shape.streaming = from_gpu;
    return shape;
}

// Copy engines do all the work: the threads only keep them busy.
CopyShape shape_between_gpus(std::size_t bytes) {
    CopyShape shape;
    shape.threads = kThreadsBetweenGpus;
    shape.slots = kSlotsBetweenGpus;
    shape.chunk =
        std::clamp(std::bit_floor(bytes / kChunksBetweenGpus), kSmallestBetweenGpus, kLargestChunk);
    shape.least = kSmallestBetweenGpus;
    return shape;
}

}  // namespace

CopyShape default_shape(const End& to, const End& from, std::size_t bytes, std::size_t threads,
                        const std::vector<int>& relays) {
    const bool to_gpu = to.kind == End::Kind::device;
    const bool from_gpu = from.kind == End::Kind::device;
    if (to_gpu && from_gpu) return shape_between_gpus(bytes);
    const bool in_file = to.kind == End::Kind::file || from.kind == End::Kind::file;
    CopyShape shape = slot_shape(bytes, threads, from_gpu || (in_file && to_gpu));
    if (in_file) {
        shape.threads = std::clamp<std::size_t>(threads, 1, kThreadsPerFile);
        return shape;
    }
    if (!to_gpu && !from_gpu) {
        shape.chunk = kLargestChunk;  // nothing is staged
        return shape;
    }
    if (relays.empty()) return shape;
    shape.relays = relays;
    if ((to_gpu ? from : to).pinned) {
        shape.threads = 1 + relays.size();  // no CPU moves bytes
        shape.slots = kSlotsOfRelays;
        shape.chunk =
            std::clamp(std::bit_floor(bytes / kChunksOfRelays), kSmallestChunk, kRelayChunk);
    } else {
        // With many threads, small slots stay in the CPUs' caches.
        shape.threads = kThreadsPerLink * (1 + relays.size());
        shape.least = std::min(shape.chunk, kSmallestPageableRelay);
        shape.slots = kPageableRelaySlots;
    }
    return shape;
}

Choice choose(const Engine& engine, const Side& to, const Side& from, std::size_t bytes) {
    Choice choice;
    const auto plain = [&](std::string why) {
        choice.why = std::move(why);
        return choice;
    };
    const EngineOptions& options = engine.options();
    if (options.plain) return plain("plain copies were asked for");
    const bool to_gpu = to.end.kind == End::Kind::device;
    const bool from_gpu = from.end.kind == End::Kind::device;
    if (to.managed || from.managed) return plain("the runtime moves managed memory");
    const bool relayed = !options.relays.empty() && bytes >= kRelayFrom;
    choice.shape = default_shape(to.end, from.end, bytes, options.threads,
                                 relayed ? options.relays : std::vector<int>{});
    choice.policy = decision(engine, to, from, bytes);
    if (choice.policy != nullptr) {
        if (choice.policy->method == PolicyMethod::plain) return plain("by the policy");
        choice.method = Choice::Method::chunked;
        choice.shape = choice.policy->shape_for(operand_gpu(to, from));
        choice.why = "by the policy";
        return choice;
    }
    if (!to_gpu && !from_gpu) {
        if (bytes < kPlainBelow) return plain("too small for several threads");
        choice.method = Choice::Method::chunked;
        choice.why = "threads copy between host memories";
        return choice;
    }
    if (to_gpu && from_gpu) {
        if (to.end.gpu == from.end.gpu) return plain("within one GPU");
        if (engine.are_peers(to.end.gpu, from.end.gpu)) return plain("over the peer link");
        if (bytes < kPlainBelow) return plain("too small for staging");
        choice.method = Choice::Method::chunked;
        choice.why = "staged through pinned memory: the GPUs have no peer access";
        return choice;
    }
    const End& host = to_gpu ? from.end : to.end;
    if (!host.pinned && bytes < kPlainBelow) return plain("too small for staging");
    // Creating pages is work for CPUs: all of them help, each with its own huge pages.
    if (from_gpu && !host.pinned && is_fresh(host.data, bytes)) {
        if (!relayed) choice.shape.threads = 0;
        choice.shape.least = host::kHugePage;
        choice.shape.chunk = host::kHugePage;
    }
    if (relayed) {
        choice.method = Choice::Method::chunked;
        choice.why = "over the links of the relays too";
        return choice;
    }
    if (host.pinned) {
        if (options.polite_bytes == 0 || bytes <= options.polite_bytes) {
            return plain("the copy engine reaches both sides");
        }
        choice.method = Choice::Method::chunked;
        choice.shape.chunk =
            std::clamp(std::bit_floor(options.polite_bytes / 2), kSmallestChunk, kLargestChunk);
        choice.why = "in pieces, so that other copies get their turn";
        return choice;
    }
    choice.method = Choice::Method::chunked;
    if (options.polite_bytes != 0) {
        // Each chunk is submitted alone: large ones lose less time between them.
        choice.shape.chunk =
            std::clamp(std::bit_floor(std::min(bytes / kFewestChunks, options.polite_bytes / 2)),
                       kSmallestChunk, kLargestChunk);
        choice.shape.slots = kPoliteSlots;
    }
    choice.why = "threads copy through pinned slots: the memory is pageable";
    return choice;
}

void drain(const Engine& engine, const CallerStream& stream) noexcept {
    try {
        const Ordering order = ordering(engine, stream, 0);
        if (order.stream && !order.capturing) drain(*order.stream);
    } catch (const std::exception&) {
        return;  // the stream cannot be queried
    }
}

// --- calls -----------------------------------------------------------------------------------

namespace {

// Returns whether the fast path made the copy.
bool copied_small(Engine& engine, void* to, const void* from, std::size_t bytes,
                  const CallerStream& stream) {
    std::optional<Sides> known;
    if (copy_small(engine, to, from, bytes, stream, known)) return true;
    const gpu::CallerState keep;
    const Prepared ready = prepare(engine, to, from, bytes, stream, known);
    if (ready.choice.method == Choice::Method::plain) {
        plain_copy(ready.to, ready.from, bytes, ready.order);
    } else {
        run_ordered(engine, job_of(engine, ready, bytes), ready.order, stream);
    }
    return false;
}

}  // namespace

void copy(Engine& engine, void* to, const void* from, std::size_t bytes,
          const CallerStream& stream) {
    engine.check_process();
    if (bytes != 0) copied_small(engine, to, from, bytes, stream);
}

std::optional<Started> copy_and_wait(Engine& engine, void* to, const void* from, std::size_t bytes,
                                     const CallerStream& stream, double seconds) {
    engine.check_process();
    if (bytes == 0) return std::nullopt;
    const bool small = copied_small(engine, to, from, bytes, stream);
    const gpu::CallerState keep;
    const CallerStream used = small ? stream : stream_of_copy(stream, to, from, bytes);
    try {
        const auto end = std::chrono::steady_clock::now() + kLookingAtStream;
        while (small && std::chrono::steady_clock::now() < end) {
            if (gpu::is_idle(stream.handle)) return std::nullopt;
            std::this_thread::yield();
        }
        auto marked = mark(engine, used, bytes);
        if (!marked || marked->wait(seconds)) return std::nullopt;
        return marked;
    } catch (const gpu::Error&) {
        drain(engine, used);
        throw;
    }
}

Started copy_async(const std::shared_ptr<Engine>& engine, void* to, const void* from,
                   std::size_t bytes, const CallerStream& stream) {
    engine->check_process();
    if (bytes == 0) return Started(0);
    const gpu::CallerState keep;
    const Prepared ready = prepare(*engine, to, from, bytes, stream);
    if (ready.order.capturing) {
        throw NotSupported("the stream is being captured: record the copy with copy()");
    }
    const bool blocks = !ready.order.stream || !gpu_reaches(ready.to) || !gpu_reaches(ready.from);
    if (ready.choice.method == Choice::Method::plain &&
        (!blocks || engine->options().plain || ready.to.managed || ready.from.managed)) {
        std::optional<gpu::Event> event;
        if (ready.order.stream) {
            event.emplace(ready.order.stream->device(), gpu::EventUse::ordering);
        }
        plain_copy(ready.to, ready.from, bytes, ready.order);
        if (!event) return Started(bytes);
        try {
            event->record(*ready.order.stream);
        } catch (const gpu::Error&) {
            drain(*ready.order.stream);
            throw;
        }
        return {bytes, std::move(*event)};
    }
    // A plain copy of pageable memory would block the caller: a thread does it instead.
    auto job = job_of(*engine, ready, bytes);
    engine->start(job, after(ready.order, stream));
    return {engine, std::move(job)};
}

void read(Engine& engine, int file, std::uint64_t offset, void* to, std::size_t bytes,
          const CallerStream& stream, std::size_t& moved) {
    engine.check_process();
    moved = 0;
    if (bytes == 0) return;
    const gpu::CallerState keep;
    const FileCopy made = prepare_file(engine, End::of_file(file, offset), to, bytes, true, stream);
    try {
        run_ordered(engine, made.job, made.order, stream);
        moved = made.job->moved_or_expected();
    } catch (...) {
        moved = made.job->moved();
        throw;
    }
    try {
        made.job->rethrow();  // it has failed since; that is not the end of the file
    } catch (...) {
        made.job->wait();
        moved = made.job->moved();
        throw;
    }
}

Started read_async(const std::shared_ptr<Engine>& engine, int file, std::uint64_t offset, void* to,
                   std::size_t bytes, const CallerStream& stream) {
    engine->check_process();
    if (bytes == 0) return Started(0);
    const gpu::CallerState keep;
    FileCopy made = prepare_file(*engine, End::of_file(file, offset), to, bytes, true, stream);
    engine->start(made.job, after(made.order, stream));
    return {engine, std::move(made.job)};
}

void write(Engine& engine, int file, std::uint64_t offset, const void* from, std::size_t bytes,
           const CallerStream& stream, std::size_t& moved) {
    engine.check_process();
    moved = 0;
    if (bytes == 0) return;
    const gpu::CallerState keep;
    const FileCopy made = prepare_file(engine, End::of_file(file, offset), const_cast<void*>(from),
                                       bytes, false, stream);
    try {
        run_ordered(engine, made.job, made.order, stream);
        moved = made.job->moved();
    } catch (...) {
        moved = made.job->moved();
        throw;
    }
}

Started write_async(const std::shared_ptr<Engine>& engine, int file, std::uint64_t offset,
                    const void* from, std::size_t bytes, const CallerStream& stream) {
    engine->check_process();
    if (bytes == 0) return Started(0);
    const gpu::CallerState keep;
    FileCopy made = prepare_file(*engine, End::of_file(file, offset), const_cast<void*>(from),
                                 bytes, false, stream);
    engine->start(made.job, after(made.order, stream));
    return {engine, std::move(made.job)};
}

std::optional<Started> mark(Engine& engine, const CallerStream& stream, std::size_t bytes) {
    engine.check_process();
    if (stream.none) return std::nullopt;
    const gpu::CallerState keep;
    const Ordering order = ordering(engine, stream, 0);
    if (!order.stream || order.capturing) return std::nullopt;
    gpu::Event event(order.stream->device(), gpu::EventUse::ordering);
    event.record(*order.stream);
    return Started(bytes, std::move(event));
}

std::string explain(Engine& engine, const void* to, const void* from, std::size_t bytes) {
    engine.check_process();
    const gpu::CallerState keep;
    if (bytes == 0) return "nothing to copy";
    check_arguments(to, from, bytes);
    const Choice choice = choose(engine, side_of(const_cast<void*>(to), bytes),
                                 side_of(const_cast<void*>(from), bytes), bytes);
    const std::string expected =
        choice.policy == nullptr ? "" : expectation(*choice.policy, engine.policy_file());
    if (choice.method == Choice::Method::plain) return "plain copy: " + choice.why + expected;
    const std::size_t most = engine.options().threads;
    const std::size_t threads =
        choice.shape.threads == 0 ? most : std::min(choice.shape.threads, most);
    std::string text = "chunked copy: " + choice.why + "; chunks of " +
                       std::to_string(choice.shape.chunk >> 10) + " KiB, up to " +
                       std::to_string(threads) + " threads";
    if (!choice.shape.relays.empty()) {
        text += ", relays";
        for (const int relay : choice.shape.relays) text += " gpu:" + std::to_string(relay);
    }
    return text + expected;
}

}  // namespace waywiser::transfer
