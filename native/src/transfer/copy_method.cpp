#include "transfer/copy_method.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "transfer/calling_thread.hpp"
#include "transfer/policy.hpp"
#include "waywiser/huge_page.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kRelayFrom = std::size_t{16} << 20;
constexpr std::size_t kSmallestChunk = std::size_t{256} << 10;
constexpr std::size_t kLargestChunk = std::size_t{4} << 20;
constexpr std::size_t kMostStreamedSlots = std::size_t{32} << 20;
constexpr std::size_t kPoliteSlots = 3;
constexpr std::size_t kSlotsOfFreshPages = 2;
constexpr std::size_t kRelayChunk = std::size_t{8} << 20;
constexpr std::size_t kSlotsOfRelays = 4;
constexpr std::size_t kPageableRelaySlots = 4;
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
// Threads that are awake (measured on H100 with 16 CPUs, docs/results/2026-11-27-awake): more of
// them, or more copies of the GPU, wait longer for the driver and for locks than they gain. Pieces
// that the GPU has just written are smaller, since the last of them are drained after the link's
// work.
constexpr std::size_t kFillingAwakeThreads = 4;
constexpr std::size_t kDrainingAwakeThreads = 6;
constexpr std::size_t kDrainedPieces = 512;
constexpr std::size_t kSmallestDrainedPiece = std::size_t{16} << 10;
constexpr std::size_t kMostOfAwakeRing = std::size_t{64} << 20;
constexpr std::size_t kMostFilledAwake = std::size_t{32} << 20;
constexpr std::size_t kMostDrainedAwake = std::size_t{64} << 20;
// Minimum numbers of copies of the GPU, of at most kLargestSubmission bytes each.
constexpr std::size_t kFilledSubmissions = 8;
constexpr std::size_t kDrainedSubmissions = 2;
constexpr std::size_t kSmallestSubmission = std::size_t{512} << 10;
constexpr std::size_t kLargestSubmission = std::size_t{1} << 20;
constexpr std::size_t kPieces = 128;
constexpr std::size_t kSmallestPiece = std::size_t{32} << 10;
constexpr std::size_t kLargestPiece = std::size_t{128} << 10;
constexpr std::size_t kMostSlots = 16;  // per thread
constexpr std::size_t kSubmissions = 32;
constexpr std::size_t kLargestDrained = std::size_t{2} << 20;
// Slots of a large copy together.
constexpr std::size_t kMostOfRing = std::size_t{64} << 20;
constexpr std::size_t kOwnSlots = 4;
constexpr std::size_t kFillingThreads = 10;
constexpr std::size_t kDrainingThreads = 8;
// A file needs more: copying from the page cache costs a CPU 50 % more time.
constexpr std::size_t kThreadsPerFile = 12;
constexpr std::size_t kFileChunk = std::size_t{2} << 20;
constexpr std::size_t kFileSlots = 2;
constexpr std::size_t kPiecesOnHost = 64;
constexpr std::size_t kSmallestOnHost = std::size_t{512} << 10;

bool is_on_gpu(const Side& side) { return side.end.kind == Endpoint::Kind::device; }

PolicyMemory policy_memory(const Side& side) {
    switch (side.end.kind) {
        case Endpoint::Kind::device: return PolicyMemory::device;
        case Endpoint::Kind::file: return PolicyMemory::file;
        default: return side.end.pinned ? PolicyMemory::pinned : PolicyMemory::pageable;
    }
}

// Whether threads that are awake make a copy between pageable memory and a GPU in their own shape.
bool is_for_awake(const EngineOptions& options, std::size_t bytes, bool from_gpu) {
    return options.spin_seconds > 0 && options.max_queued_bytes == 0 && bytes >= kPlainBelowAwake &&
           bytes <= (from_gpu ? kMostDrainedAwake : kMostFilledAwake);
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
    const bool is_polite = options.max_queued_bytes == 0 || bytes <= options.max_queued_bytes;
    const bool over_link = from_gpu || to_gpu;
    // Policies are measured with threads that sleep between copies.
    const bool staged = from_gpu != to_gpu &&
                        (key.from == PolicyMemory::pageable || key.to == PolicyMemory::pageable);
    if (staged && is_for_awake(options, bytes, from_gpu)) return nullptr;
    if (found->method == PolicyMethod::plain && staged && options.spin_seconds > 0 &&
        bytes >= least_chunked(options)) {
        return nullptr;
    }
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

// So many slots for each thread that all together have `bytes`, and no more than a policy may name.
std::size_t slots_within(std::size_t bytes, const CopyShape& shape) {
    return std::clamp<std::size_t>(bytes / shape.chunk / shape.threads, 1, kMostSlots);
}

// Through pinned slots that CPUs fill or drain.
CopyShape slot_shape(std::size_t bytes, std::size_t threads, bool from_gpu) {
    CopyShape shape;
    shape.threads =
        std::clamp<std::size_t>(threads, 1, from_gpu ? kDrainingThreads : kFillingThreads);
    shape.chunk = std::clamp(std::bit_floor(bytes / kSubmissions), kSmallestSubmission,
                             from_gpu ? kLargestDrained : kLargestSubmission);
    shape.least = std::clamp(std::bit_floor(bytes / kPieces), kSmallestPiece, kLargestPiece);
    shape.slots = slots_within(std::min(bytes, kMostOfRing) + shape.chunk, shape);
    // Non-temporal stores save the CPUs a third of the memory traffic. The GPU reads slots that a
    // CPU has just filled more slowly from its cache than from memory, but large copies are limited
    // by the memory: there, slots that stay in the cache of one CPU are faster.
    shape.streaming = from_gpu;
    shape.own_slots = !from_gpu && bytes > kMostStreamedSlots;
    shape.stream_slots = !from_gpu && !shape.own_slots;
    if (shape.own_slots) shape.slots = kOwnSlots;
    return shape;
}

// By threads that are awake: fewer of them, and smaller pieces. All bytes are in slots at once if
// the staging memory allows it.
CopyShape awake_shape(std::size_t bytes, std::size_t threads, bool from_gpu) {
    CopyShape shape = slot_shape(bytes, threads, from_gpu);
    shape.threads = std::clamp<std::size_t>(
        threads, 1, from_gpu ? kDrainingAwakeThreads : kFillingAwakeThreads);
    shape.chunk =
        std::clamp(std::bit_floor(bytes / (from_gpu ? kDrainedSubmissions : kFilledSubmissions)),
                   kSmallestSubmission, kLargestSubmission);
    shape.least = std::clamp(std::bit_floor(bytes / (from_gpu ? kDrainedPieces : kPieces)),
                             from_gpu ? kSmallestDrainedPiece : kSmallestPiece, kLargestPiece);
    shape.slots =
        slots_within(std::min(bytes, kMostOfAwakeRing) + shape.chunk * shape.threads, shape);
    shape.own_slots = false;
    shape.stream_slots = !from_gpu;
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

CopyShape default_shape(const Endpoint& to, const Endpoint& from, std::size_t bytes,
                        std::size_t threads, const std::vector<int>& relays) {
    const bool to_gpu = to.kind == Endpoint::Kind::device;
    const bool from_gpu = from.kind == Endpoint::Kind::device;
    if (to_gpu && from_gpu) return shape_between_gpus(bytes);
    const bool in_file = to.kind == Endpoint::Kind::file || from.kind == Endpoint::Kind::file;
    CopyShape shape = slot_shape(bytes, threads, from_gpu || (in_file && to_gpu));
    if (in_file) {
        shape.threads = std::clamp<std::size_t>(threads, 1, kThreadsPerFile);
        shape.chunk = std::clamp(std::bit_floor(std::max<std::size_t>(bytes / kFewestChunks, 1)),
                                 kSmallestChunk, kFileChunk);
        shape.slots = kFileSlots;
        shape.own_slots = to_gpu;
        return shape;
    }
    if (!to_gpu && !from_gpu) {
        shape.chunk = std::clamp(std::bit_floor(bytes / kPiecesOnHost), kSmallestOnHost,
                                 kLargestChunk);  // nothing is staged
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
        shape.slots = kPageableRelaySlots;
    }
    return shape;
}

namespace {

Choice plain(Choice choice, const char* why) {
    choice.why = why;
    return choice;
}

Choice chunked(Choice choice, const char* why) {
    choice.method = Choice::Method::chunked;
    choice.why = why;
    return choice;
}

Choice choose_on_host(Choice choice, std::size_t bytes, std::size_t threads) {
    if (bytes < alone_below(threads)) {
        return plain(std::move(choice), "too small for several threads");
    }
    return chunked(std::move(choice), "threads copy between host memories");
}

Choice choose_between_gpus(const Engine& engine, Choice choice, int to, int from,
                           std::size_t bytes) {
    if (to == from) return plain(std::move(choice), "within one GPU");
    if (engine.are_peers(to, from)) return plain(std::move(choice), "over the peer link");
    if (bytes < kPlainBelow) return plain(std::move(choice), "too small for staging");
    return chunked(std::move(choice), "staged through pinned memory: the GPUs have no peer access");
}

// Chunks of which two are at most the bytes that may be queued on a copy engine.
std::size_t polite_chunk(std::size_t bytes) {
    return std::clamp(std::bit_floor(bytes), kSmallestChunk, kLargestChunk);
}

// Between pinned memory and a GPU.
Choice choose_of_pinned(Choice choice, std::size_t bytes, std::size_t max_queued_bytes) {
    if (max_queued_bytes == 0 || bytes <= max_queued_bytes) {
        return plain(std::move(choice), "the copy engine reaches both sides");
    }
    choice.shape.chunk = polite_chunk(max_queued_bytes / 2);
    return chunked(std::move(choice), "in pieces, so that other copies get their turn");
}

// Between pageable memory and a GPU.
Choice choose_of_pageable(Choice choice, std::size_t bytes, std::size_t max_queued_bytes) {
    if (max_queued_bytes != 0) {
        // Each chunk is submitted alone: large ones lose less time between them.
        choice.shape.chunk = polite_chunk(std::min(bytes / kFewestChunks, max_queued_bytes / 2));
        choice.shape.least = std::min(choice.shape.chunk, kLargestPiece);
        choice.shape.slots = kPoliteSlots;
        choice.shape.own_slots = false;
    }
    return chunked(std::move(choice), "threads copy through pinned slots: the memory is pageable");
}

Choice choose_over_link(Choice choice, const Side& to, const Side& from, std::size_t bytes,
                        const EngineOptions& options, bool relayed) {
    const bool from_gpu = is_on_gpu(from);
    const Endpoint& host = from_gpu ? to.end : from.end;
    if (!host.pinned && bytes < least_chunked(options)) {
        return plain(std::move(choice), "too small for staging");
    }
    const bool fresh = from_gpu && !host.pinned && is_fresh(host.data, bytes);
    // Threads that are awake do not help to create pages.
    if (fresh && bytes < kPlainBelow) {
        return plain(std::move(choice), "too small for staging: its pages do not exist yet");
    }
    // Creating pages is work for CPUs: all of them help, each with its own huge pages if
    // these are small.
    if (fresh) {
        if (!relayed) choice.shape.threads = 0;
        choice.shape.least = kSmallHugePage;
        choice.shape.chunk = kSmallHugePage;
        choice.shape.slots = kSlotsOfFreshPages;
    }
    if (relayed) return chunked(std::move(choice), "over the links of the relays too");
    if (!host.pinned && !fresh && is_for_awake(options, bytes, from_gpu)) {
        choice.shape = awake_shape(bytes, options.threads, from_gpu);
        return chunked(std::move(choice), "threads that are awake copy through pinned slots");
    }
    return host.pinned ? choose_of_pinned(std::move(choice), bytes, options.max_queued_bytes)
                       : choose_of_pageable(std::move(choice), bytes, options.max_queued_bytes);
}

}  // namespace

Choice choose(const Engine& engine, const Side& to, const Side& from, std::size_t bytes,
              bool recorded) {
    Choice choice;
    if (recorded) return plain(choice, "the stream is being captured");
    const EngineOptions& options = engine.options();
    if (options.plain) return plain(choice, "plain copies were asked for");
    if (to.managed || from.managed) return plain(choice, "the runtime moves managed memory");
    const bool relayed = !options.relays.empty() && bytes >= kRelayFrom;
    choice.shape = default_shape(to.end, from.end, bytes, options.threads,
                                 relayed ? options.relays : std::vector<int>{});
    choice.policy = decision(engine, to, from, bytes);
    if (choice.policy != nullptr) {
        if (choice.policy->method == PolicyMethod::plain) return plain(choice, "by the policy");
        choice.shape = choice.policy->shape_for(operand_gpu(to, from));
        return chunked(choice, "by the policy");
    }
    if (!is_on_gpu(to) && !is_on_gpu(from)) return choose_on_host(choice, bytes, options.threads);
    if (is_on_gpu(to) && is_on_gpu(from)) {
        return choose_between_gpus(engine, choice, to.end.gpu, from.end.gpu, bytes);
    }
    return choose_over_link(choice, to, from, bytes, options, relayed);
}

CopyShape file_shape(const Engine& engine, std::size_t bytes, const Side& memory, bool reads) {
    const Side file{.end = Endpoint::of_file(-1, 0)};
    const PolicyDecision* made =
        decision(engine, reads ? memory : file, reads ? file : memory, bytes);
    if (made != nullptr && made->method == PolicyMethod::chunked)
        return made->shape_for(memory.end.gpu);
    const Endpoint& to = reads ? memory.end : file.end;
    const Endpoint& from = reads ? file.end : memory.end;
    CopyShape shape = default_shape(to, from, bytes, engine.options().threads);
    if (engine.options().plain) {
        shape.threads = 1;
        shape.direct_io = false;
    }
    return shape;
}

}  // namespace waywiser::transfer
