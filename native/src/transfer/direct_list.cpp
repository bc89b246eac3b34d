#include "transfer/direct_list.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "transfer/byte_text.hpp"
#include "transfer/list_kernel.hpp"
#include "transfer/list_pipeline.hpp"
#include "transfer/profiler.hpp"
#include "transfer/statistics.hpp"

namespace waywiser::transfer {
namespace {

ListPath path_of(const PieceGroup& group) {
    const bool to_gpu = group.to.end.kind == Endpoint::Kind::device;
    const bool from_gpu = group.from.end.kind == Endpoint::Kind::device;
    if (to_gpu && from_gpu) {
        return group.to.end.gpu == group.from.end.gpu ? ListPath::within_gpu
                                                      : ListPath::between_gpus;
    }
    return to_gpu ? ListPath::from_host : ListPath::to_host;
}

int gpu_of(const PieceGroup& group) {
    return group.to.end.gpu >= 0 ? group.to.end.gpu : group.from.end.gpu;
}

// Pieces that are prepared at once, while the GPU moves earlier ones. The first window is small, so
// that the GPU starts soon. Each window is twice as large as the one before, so that the GPU does
// not wait for a long one after a short one.
constexpr std::size_t kFirstWindow = 2048;
constexpr std::size_t kWindow = 16384;
// Of a pipeline, whose tables have one side. Each of them is a copy over the link.
constexpr std::size_t kPipelineWindow = 2 * kWindow;
// The tables of all windows have one size, so that later windows can reuse them.
constexpr std::size_t kWindowTable = 2 * kWindow * sizeof(std::size_t);

void move_by_batches(std::span<const Piece> pieces, const gpu::Stream& stream) {
    const std::vector<Piece> joined = merged(pieces);
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> sizes;
    for (std::size_t first = 0; first < joined.size(); first += kMostInBatch) {
        const std::size_t last = std::min(joined.size(), first + kMostInBatch);
        to.clear();
        from.clear();
        sizes.clear();
        for (std::size_t i = first; i < last; ++i) {
            to.push_back(joined[i].to);
            from.push_back(joined[i].from);
            sizes.push_back(joined[i].bytes);
        }
        gpu::copy_batch_async(to, from, sizes, true, stream);
    }
}

// Runs `enqueue` on a stream of the library that follows the legacy stream, and then orders the
// legacy stream after it. If that fails, it waits for the work.
template <class Enqueue>
void on_substitute(Engine& engine, const gpu::Stream& legacy, const Enqueue& enqueue) {
    CopyStreams::Lease lease =
        engine.streams().beside(legacy.device(), legacy.handle(), CopyStreams::Use::substitute);
    const gpu::Stream& substitute = *lease;
    const std::shared_ptr<gpu::Event> event = engine.events().take(legacy.device());
    event->record(legacy);
    gpu::wait(substitute, *event);
    const auto follow = [&] {
        try {
            event->record(substitute);
            gpu::wait(legacy, *event);
        } catch (const gpu::Error&) {
            rethrow_when_settled(lease);
        }
    };
    try {
        enqueue(substitute);
    } catch (...) {
        follow();  // orders the enqueued work before the caller's next
        throw;
    }
    follow();
}

// The pipeline that a list has taken. What it moves is before the later work of the list's stream.
class TakenPipeline {
public:
    // `bytes`: of the list. The destructor sets `in_use` if a GPU that does not answer may use its
    // memory.
    TakenPipeline(ListStaging& lists, const gpu::Stream& stream, std::size_t bytes, bool& in_use)
        : lists_(lists), stream_(stream), bytes_(bytes), in_use_(in_use) {}
    // Without finish(), after a failure.
    ~TakenPipeline() {
        if (!taken_) return;
        try {
            (*taken_)->finish_before(stream_);
            (*taken_)->join();
        } catch (const gpu::Error&) {
            in_use_ = lists_.drop(stream_.device(), std::move(taken_)) == Settled::no;
            return;
        }
        give_back();
    }
    TakenPipeline(const TakenPipeline&) = delete;
    TakenPipeline& operator=(const TakenPipeline&) = delete;

    // nullptr if none is free now. `slots`: of the first choice.
    ListPipeline* get(std::size_t slots = 0) {
        if (!taken_) {
            taken_ = lists_.take_pipeline(stream_);
            if (taken_) (*taken_)->start_after(stream_, bytes_, slots);
        }
        return taken_ ? &**taken_ : nullptr;
    }
    // Whether it has loaded bytes of the list that it has not moved.
    [[nodiscard]] bool loads() const { return taken_ && (*taken_)->loads(); }
    // Other moves follow, of what it has loaded.
    void unload() {
        if (loads()) (*taken_)->join();
    }
    void finish() {
        if (!taken_) return;
        (*taken_)->finish_before(stream_);
        give_back();
    }

private:
    void give_back() {
        lists_.give_back(stream_.device(), std::move(taken_));
        taken_.reset();
    }

    ListStaging& lists_;
    const gpu::Stream& stream_;
    const std::size_t bytes_;
    bool& in_use_;
    std::unique_ptr<OwnPipeline> taken_;
};

// 1 or 0: whether an entry of an index, which may be out of range, is one more than another.
std::size_t is_next(std::int64_t one, std::int64_t next) {
    return static_cast<std::uint64_t>(next) - static_cast<std::uint64_t>(one) == 1 ? 1U : 0U;
}

// False if there is no memory for its tables now.
bool move_by_kernel(ListStaging& lists, const ListPart& part, const ListTraits& traits,
                    unsigned blocks, const gpu::Stream& stream) {
    const std::size_t entries = traits.table_entries();
    if (entries == 0) {
        launch_list(stream, blocks, runs_of(part, traits, ListSide::to, nullptr),
                    runs_of(part, traits, ListSide::from, nullptr));
        return true;
    }
    const std::size_t bytes = entries * sizeof(std::size_t);
    auto table = lists.take(stream.device(), part.is_all() ? bytes : std::max(bytes, kWindowTable));
    if (!table) return false;
    auto* here = reinterpret_cast<std::size_t*>(table->pinned.data());
    const auto* there = reinterpret_cast<const std::size_t*>(table->on_device.data());
    const auto side = [&](ListSide which, std::size_t pitch) {
        const Runs runs = runs_of(part, traits, which, there);
        if (pitch != 0) return runs;
        part.write_offsets(traits.run, which, runs.data, here);
        here += runs.count;
        there += runs.count;
        return runs;
    };
    const Runs to = side(ListSide::to, traits.to_pitch);
    const Runs from = side(ListSide::from, traits.from_pitch);
    const auto give_back = [&] { lists.retire(std::move(*table), stream); };
    try {
        gpu::copy_async(table->on_device.data(), table->pinned.data(), bytes, stream);
        launch_list(stream, blocks, to, from);
    } catch (...) {
        give_back();
        throw;
    }
    give_back();
    return true;
}

// False if there is no pipeline, or no memory for its table now.
bool move_by_pipeline(ListStaging& lists, const ListPart& part, ListTraits traits,
                      const ListChoice& choice, TakenPipeline& taken) {
    ListPipeline* const pipeline = taken.get(choice.slots);
    if (pipeline == nullptr) return false;
    const bool to_host = traits.path == ListPath::to_host;
    const ListSide on_gpu = to_host ? ListSide::from : ListSide::to;
    traits.access = traits.gpu_access;
    std::byte* const host = part.base(to_host ? ListSide::to : ListSide::from, traits.run);
    const auto move = [&](const Runs& runs) {
        if (to_host) {
            pipeline->gather(host, runs, choice.chunk, choice.blocks);
        } else {
            pipeline->scatter(runs, host, choice.chunk, choice.blocks);
        }
    };
    const std::size_t entries = traits.pipeline_entries();
    if (entries == 0) {
        move(runs_of(part, traits, on_gpu, nullptr));
        return true;
    }
    const std::size_t bytes = entries * sizeof(std::size_t);
    const gpu::Stream& kernels = pipeline->kernels();
    auto table =
        lists.take(kernels.device(), part.is_all() ? bytes : std::max(bytes, kWindowTable));
    if (!table) return false;
    const Runs runs = runs_of(part, traits, on_gpu,
                              reinterpret_cast<const std::size_t*>(table->on_device.data()));
    part.write_offsets(traits.run, on_gpu, runs.data,
                       reinterpret_cast<std::size_t*>(table->pinned.data()));
    try {
        pipeline->upload(table->on_device.data(), table->pinned.data(), bytes);
        move(runs);
    } catch (...) {
        pipeline->join();  // the table may be in use in any stream of the pipeline
        lists.retire(std::move(*table), kernels);
        throw;
    }
    lists.retire(std::move(*table), kernels);
    return true;
}

waywiser_method counted_as(ListMethod method) {
    switch (method) {
        case ListMethod::copies: return WAYWISER_METHOD_LIST_COPIES;
        case ListMethod::batch: return WAYWISER_METHOD_LIST_BATCH;
        case ListMethod::kernel: return WAYWISER_METHOD_LIST_KERNEL;
        case ListMethod::pipeline: break;
    }
    return WAYWISER_METHOD_LIST_PIPELINE;
}

// Counts the parts of a list: one transfer for each method, in the destructor.
class PartCounts {
public:
    explicit PartCounts(Statistics& statistics) : statistics_(statistics) {}
    ~PartCounts() {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            const Count& own = counts_[i];
            if (own.bytes == 0 && own.end == Statistics::End::done) continue;
            statistics_.count(counted_as(static_cast<ListMethod>(i)), own.bytes, own.taken,
                              own.end);
        }
    }
    PartCounts(const PartCounts&) = delete;
    PartCounts& operator=(const PartCounts&) = delete;

    // Calls `move`, which returns whether it has moved the part, and returns the same.
    template <class Move>
    bool move_part(ListMethod method, std::size_t bytes, const Move& move) {
        Count& own = counts_.at(static_cast<std::size_t>(method));
        const ProfilerRange profiled([&] {
            return "waywiser " + text_of_bytes(bytes) + ' ' + name_of_method(counted_as(method));
        });
        const Statistics::Clock::time_point begun = Statistics::Clock::now();
        try {
            if (!move()) return false;
        } catch (...) {
            own.taken += Statistics::Clock::now() - begun;
            own.end = Statistics::End::failed;
            throw;
        }
        own.taken += Statistics::Clock::now() - begun;
        own.bytes += bytes;
        return true;
    }

private:
    struct Count {
        std::size_t bytes = 0;
        std::chrono::nanoseconds taken{0};
        Statistics::End end = Statistics::End::done;
    };

    Statistics& statistics_;
    std::array<Count, 4> counts_;  // by ListMethod
};

// How a list is moved in parts.
struct ListMove {
    Engine& engine;
    PartCounts counts;
    PieceGroup& group;
    const gpu::Stream& queue;
    const CallerStream& stream;
    TakenPipeline pipeline;
    std::size_t loading = 0;  // the list's first blocks, which the pipeline has or loads early
    const PolicyDecision* loaded_by = nullptr;  // what decided how it loads them
};

// Of a list in a stream of the device.
ListLimits limits_of(Engine& engine, const PieceGroup& group, int device) {
    ListLimits limits = list_limits(engine, device, group.list.bytes());
    const bool is_own = gpu_of(group) == device;
    if (!is_own) limits.of_pipeline = 0;
    limits.kernel_reaches = is_own && group.same_addresses;
    limits.has_batch = gpu::has_batch();
    return limits;
}

// Of a shorter list all blocks are checked first: that takes less time than to move a chunk.
constexpr std::size_t kBlocksBeforeMoving = 32768;

// Whether a pipeline, if a list's first part has one, loads what later parts need from the host
// too. `together`: number of the list's first blocks that are known to be contiguous there.
bool loads_early(const CopyList& list, const ListChoice& choice, ListPath path,
                 std::size_t together) {
    return choice.method == ListMethod::pipeline && path == ListPath::from_host &&
           list.block != 0 && together >= std::min(list.count(), kBlocksBeforeMoving);
}

// Whether it still does so for a part.
bool loads_ahead(const CopyList& list, const ListPart& part, std::size_t together) {
    return together >= std::min(list.count(), part.end() + kBlocksBeforeMoving);
}

// The number of the first blocks that are contiguous in the source.
std::size_t first_together(const CopyList& list) {
    const Blocks& from = list.from_blocks;
    if (list.block == 0 || from.stride != list.block) return 0;
    const auto jump = std::ranges::adjacent_find(
        from.index, [](std::int64_t one, std::int64_t next) { return is_next(one, next) == 0; });
    return jump == from.index.end() ? from.index.size()
                                    : static_cast<std::size_t>(jump - from.index.begin()) + 1;
}

// Starts to load the blocks of the source that are known.
void load_early(ListMove& move, const ListChoice& choice) {
    const CopyList& list = move.group.list;
    if (ListPipeline* const pipeline = move.pipeline.get(choice.slots)) {
        move.loading = list.from_blocks.known;
        move.loaded_by = choice.policy;
        const auto first = static_cast<std::size_t>(list.from_blocks.index.front());
        pipeline->load(list.from_blocks.data + first * list.block, move.loading * list.block,
                       list.block, choice.chunk);
    }
}

// Lets the pipeline load further blocks, up to `end`, if they follow.
void load_ahead(ListMove& move, std::size_t end) {
    CopyList& list = move.group.list;
    if (!move.pipeline.loads() || end <= move.loading) return;
    list.check_source(end);
    if (list.from_blocks.pitch() != list.block) return move.pipeline.unload();
    move.pipeline.get()->load_further((end - move.loading) * list.block);
    move.loading = end;
}

// Before a part is moved: checks its blocks at least, and those that are loaded ahead.
void check_part(ListMove& move, const ListPart& part) {
    CopyList& list = move.group.list;
    const std::size_t first = std::min(list.count(), kBlocksBeforeMoving);
    const ListPath path = path_of(move.group);
    if (!list.checked && path == ListPath::from_host && list.from_blocks.known == 0) {
        list.check_source(first);
        const ListLimits limits = limits_of(move.engine, move.group, move.queue.device());
        const ListChoice choice =
            choose_list_method(part.traits(path), limits, move.engine.policy());
        const Blocks& from = list.from_blocks;
        const std::size_t together = from.pitch() == list.block ? from.known : 0;
        if (loads_early(list, choice, path, together)) load_early(move, choice);
    }
    list.check_first(std::max(part.end(), first));
    load_ahead(move, std::min(list.count(), part.end() + kBlocksBeforeMoving));
}

void move_by_engine(ListMove& move, const ListPart& part, ListMethod method) {
    const std::span<const Piece> pieces = part.pieces();
    if (method == ListMethod::copies) return move_by_copies(pieces, move.queue);
    if (!move.stream.is_legacy()) return move_by_batches(pieces, move.queue);
    on_substitute(move.engine, move.queue,
                  [&](const gpu::Stream& other) { move_by_batches(pieces, other); });
}

// Returns whether a pipeline moves the part.
bool move_part(ListMove& move, const ListPart& part) {
    ListStaging& lists = move.engine.lists();
    check_part(move, part);
    const ListTraits traits = part.traits(path_of(move.group));
    ListLimits limits = limits_of(move.engine, move.group, move.queue.device());
    const PolicyTable* const policy = move.engine.policy();
    ListChoice choice = choose_list_method(traits, limits, policy);
    if (move.pipeline.loads()) choice = pipeline_of(traits, limits, move.loaded_by);
    if (choice.method == ListMethod::pipeline) {
        const auto by_pipeline = [&] {
            return move_by_pipeline(lists, part, traits, choice, move.pipeline);
        };
        if (move.counts.move_part(choice.method, traits.bytes, by_pipeline)) return true;
        move.pipeline.unload();
        limits.of_pipeline = 0;
        choice = choose_list_method(traits, limits, policy);
    }
    if (choice.method == ListMethod::kernel) {
        const auto by_kernel = [&] {
            return move_by_kernel(lists, part, traits, choice.blocks, move.queue);
        };
        if (move.counts.move_part(choice.method, traits.bytes, by_kernel)) return false;
        limits.kernel_reaches = false;
        choice = choose_list_method(traits, limits, policy);
    }
    move.counts.move_part(choice.method, traits.bytes, [&] {
        move_by_engine(move, part, choice.method);
        return true;
    });
    return false;
}

// One copy of the runtime for each piece of a checked list.
void move_plainly(Engine& engine, const CopyList& list, const Ordering& order) {
    std::vector<Piece> buffer;
    const auto move = [&] {
        move_by_copies(list.part(0, list.count(), buffer), *order.stream);
        return true;
    };
    if (order.capturing) {
        move();  // only recorded
    } else {
        engine.statistics().count_call(WAYWISER_METHOD_LIST_COPIES, list.bytes(), move);
    }
}

// Calls `each` with the parts of a list; it returns whether a pipeline moves the part.
template <class Each>
void for_each_part(const CopyList& list, const Each& each) {
    std::vector<Piece> buffer;
    std::size_t most = kFirstWindow;
    for (std::size_t first = 0; first < list.count();) {
        const ListPart part(list, first, most, buffer);
        first += part.count();
        most = std::min(2 * most, each(part) ? kPipelineWindow : kWindow);
    }
}

// Adds a part to the moves of the same method.
void add_part(const ListPart& part, const ListChoice& choice, std::size_t merged,
              std::vector<DirectMove>& moves) {
    auto move = std::ranges::find_if(moves, [&](const DirectMove& one) {
        return one.choice.method == choice.method && one.choice.policy == choice.policy;
    });
    if (move == moves.end()) move = moves.insert(move, {.choice = choice});
    move->choice.blocks = std::max(move->choice.blocks, choice.blocks);
    const std::size_t in_call = choice.method == ListMethod::batch ? kMostInBatch : 1;
    move->calls += (merged + in_call - 1) / in_call;
    const auto [least, most] = part.piece_bytes();
    move->least = move->pieces == 0 ? least : std::min(move->least, least);
    move->most = std::max(move->most, most);
    move->pieces += part.count();
}

}  // namespace

ListPart::ListPart(const CopyList& list, std::size_t first, std::size_t most,
                   std::vector<Piece>& buffer)
    : list_(list),
      first_(first),
      last_(first + std::min(most, list.count() - first)),
      buffer_(buffer) {}

std::span<const Piece> ListPart::pieces() const { return list_.part(first_, count(), buffer_); }

const Blocks& ListPart::blocks(ListSide side) const {
    return side == ListSide::to ? list_.to_blocks : list_.from_blocks;
}

std::span<const std::int64_t> ListPart::index(ListSide side) const {
    return blocks(side).index.subspan(first_, count());
}

std::size_t ListPart::pitch(ListSide side) const {
    const auto all = index(side);
    if (all.size() < 2) return 0;
    if (blocks(side).step != 0) return blocks(side).pitch();
    return step_of(all) * blocks(side).stride;
}

std::pair<std::size_t, std::size_t> ListPart::piece_bytes() const {
    if (list_.block != 0) return {list_.block, list_.block};
    const auto [least, most] = std::ranges::minmax(pieces(), {}, &Piece::bytes);
    return {least.bytes, most.bytes};
}

ListTraits ListPart::traits(ListPath path) const {
    if (list_.block == 0) return traits_of(pieces(), path);
    const auto to = index(ListSide::to);
    const auto from = index(ListSide::from);
    const auto may_join = [&](const Blocks& side) {
        return side.stride == list_.block && side.step <= 1;
    };
    std::size_t joined = 0;
    if (may_join(blocks(ListSide::to)) && may_join(blocks(ListSide::from))) {
        for (std::size_t i = 1; i < to.size(); ++i) {
            joined += is_next(to[i - 1], to[i]) & is_next(from[i - 1], from[i]);
        }
    }
    const auto bits = [&](ListSide side) {
        return list_.block | reinterpret_cast<std::uintptr_t>(blocks(side).data) |
               blocks(side).stride;
    };
    const std::uintptr_t to_bits = bits(ListSide::to);
    const std::uintptr_t from_bits = bits(ListSide::from);
    const bool to_host = path == ListPath::to_host;
    const std::size_t to_pitch = pitch(ListSide::to);
    const std::size_t from_pitch = pitch(ListSide::from);
    return {.path = path,
            .bytes = list_.block * count(),
            .merged = count() - joined,
            .run = list_.block,
            .access = common_access(to_bits | from_bits),
            .to_pitch = to_pitch,
            .from_pitch = from_pitch,
            .host_contiguous = count() == 1 || (to_host ? to_pitch : from_pitch) == list_.block,
            .gpu_access = common_access(to_host ? from_bits : to_bits)};
}

std::byte* ListPart::base(ListSide side, std::size_t pitch) const {
    if (list_.block == 0) return lowest(pieces(), side);
    const Blocks& all = blocks(side);
    if (pitch == 0) return all.data;
    return all.data + static_cast<std::size_t>(index(side).front()) * all.stride;
}

void ListPart::write_offsets(std::size_t run, ListSide side, const std::byte* base,
                             std::size_t* offsets) const {
    if (list_.block == 0) return transfer::write_offsets(pieces(), run, side, base, offsets);
    const std::size_t stride = blocks(side).stride;
    for (const std::int64_t i : index(side)) *offsets++ = static_cast<std::size_t>(i) * stride;
}

Runs runs_of(const ListPart& part, const ListTraits& traits, ListSide side,
             const std::size_t* offsets) {
    const std::size_t count = traits.bytes / traits.run;
    const std::size_t pitch = side == ListSide::to ? traits.to_pitch : traits.from_pitch;
    Runs runs = listed_runs(part.base(side, pitch), traits.run, count, offsets, traits.access);
    if (pitch == 0) return runs;
    runs.offsets = nullptr;
    runs.pitch = pitch;
    runs.bits |= pitch;
    return runs;
}

void write_offsets(std::span<const Piece> pieces, std::size_t run, ListSide side,
                   const std::byte* base, std::size_t* offsets) {
    const auto start = reinterpret_cast<std::uintptr_t>(base);
    for (const Piece& piece : pieces) {
        const std::uintptr_t at =
            reinterpret_cast<std::uintptr_t>(side == ListSide::to ? piece.to : piece.from) - start;
        for (std::size_t n = 0; n < piece.bytes; n += run) *offsets++ = at + n;
    }
}

bool has_same_address(std::byte* host, int device) {
    try {
        return gpu::device_address(host, device) == host;
    } catch (const gpu::Error& error) {
        if (error.kind() == gpu::Failure::sticky) throw;
        return false;
    }
}

void move_by_copies(std::span<const Piece> pieces, const gpu::Stream& stream) {
    for (const Piece& piece : merged(pieces)) {
        gpu::copy_async(piece.to, piece.from, piece.bytes, stream);
    }
}

ListLimits list_limits(Engine& engine, int gpu, std::size_t bytes) {
    const EngineOptions& options = engine.options();
    const PipelineShape pipeline = engine.lists().largest_pipeline(gpu);
    const unsigned blocks =
        options.list_multiprocessors != 0 ? options.list_multiprocessors : pipeline.blocks;
    return {.multiprocessors = engine.lists().multiprocessors(gpu),
            .most_over_link = options.list_multiprocessors,
            .spare_engine = options.max_queued_bytes != 0,
            .of_pipeline = pipeline.chunk == 0 ? 0 : blocks,
            .pipeline_chunk = pipeline.chunk,
            .list_bytes = bytes};
}

void move_direct(Engine& engine, PieceGroup& group, const Ordering& order,
                 const CallerStream& stream) {
    const gpu::Stream& queue = *order.stream;
    CopyList& list = group.list;
    const bool plainly = order.capturing || engine.options().plain;
    // Behind other work there is time to check all of it.
    if (plainly || (!list.checked && !queue.done())) list.check();
    bool in_use = false;
    try {
        if (plainly) return move_plainly(engine, list, order);
        ListMove move{.engine = engine,
                      .counts = PartCounts(engine.statistics()),
                      .group = group,
                      .queue = queue,
                      .stream = stream,
                      .pipeline = {engine.lists(), queue, list.bytes(), in_use}};
        for_each_part(list, [&](const ListPart& part) { return move_part(move, part); });
        move.pipeline.finish();
    } catch (const std::exception& error) {
        if (in_use) throw MemoryInUse(error.what());
        rethrow_when_settled(order);  // the caller may free the memory of earlier parts
    }
}

std::vector<DirectMove> plan_direct(Engine& engine, const PieceGroup& group) {
    const CopyList& list = group.list;
    std::vector<DirectMove> moves;
    if (engine.options().plain) {
        std::vector<Piece> buffer;
        const ListPart all(list, 0, list.count(), buffer);
        add_part(all, {}, merged_count(all.pieces()), moves);
        return moves;
    }
    const ListLimits limits = limits_of(engine, group, gpu_of(group));
    const std::size_t together = first_together(list);
    bool loads = false;
    const PolicyDecision* loaded_by = nullptr;
    for_each_part(list, [&](const ListPart& part) {
        const ListTraits traits = part.traits(path_of(group));
        ListChoice choice = choose_list_method(traits, limits, engine.policy());
        if (moves.empty() && loads_early(list, choice, traits.path, together)) {
            loads = true;
            loaded_by = choice.policy;
        }
        loads = loads && loads_ahead(list, part, together);
        if (loads) choice = pipeline_of(traits, limits, loaded_by);
        add_part(part, choice, traits.merged, moves);
        return choice.method == ListMethod::pipeline;
    });
    return moves;
}

}  // namespace waywiser::transfer
