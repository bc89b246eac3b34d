#include "transfer/staged_list.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "host/streaming.hpp"
#include "transfer/list_kernel.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kLeastSlot = std::size_t{256} << 10;
constexpr std::size_t kMostOfSlot = std::size_t{2} << 20;
constexpr std::size_t kFewestChunks = 16;
constexpr std::size_t kPiecesOfChunk = 4;  // for CPUs
constexpr std::size_t kSlotsPerThread = 3;
// Parts of pieces of at least so many bytes are stored around the caches: that saves a third of the
// memory traffic.
constexpr std::size_t kStreamedFrom = std::size_t{2} << 10;
constexpr std::size_t kTables = 2;  // for at most two GPUs
constexpr std::size_t kShortestRun = 16;

std::vector<std::size_t> starts_of(const CopyList& list) {
    std::vector<std::size_t> starts;
    starts.reserve(list.pieces.size());
    std::size_t at = 0;
    for (const Piece& piece : list.pieces) {
        starts.push_back(at);
        at += piece.bytes;
    }
    return starts;
}

// Copies the pieces of a part between GPU memory and a slot, where all neighbours are together.
void copy_joined(const ListPart& part, ListSide on_gpu, std::byte* slot,
                 const gpu::Stream& stream) {
    std::vector<Piece> moves(part.pieces().begin(), part.pieces().end());
    for (Piece& move : moves) {
        if (on_gpu == ListSide::to) {
            move.from = slot;
        } else {
            move.to = slot;
        }
        slot += move.bytes;
    }
    move_by_copies(moves, stream);
}

void copy_from_slot(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes >= kStreamedFrom) {
        host::copy_streaming(to, from, bytes);
    } else {
        std::memcpy(to, from, bytes);
    }
}

}  // namespace

std::size_t list_slot_bytes(std::size_t bytes) {
    return std::clamp(std::bit_ceil(bytes / kFewestChunks), kLeastSlot, kMostOfSlot);
}

StagedList::Cut StagedList::cut(const CopyList& list, std::size_t slot_bytes) {
    Cut cut{.run = list.block != 0 ? list.block : common_run(list.pieces),
            .chunk = slot_bytes,
            .least = slot_bytes};
    if (cut.run < kShortestRun) {
        cut.run = 0;
        return cut;
    }
    // The tables take their part of the slot.
    constexpr std::size_t kEntries = kTables * sizeof(std::size_t);
    const std::size_t tables = (slot_bytes * kEntries + cut.run - 1) / (cut.run + kEntries) + 1;
    const std::size_t most = slot_bytes - tables;
    // Borders of chunks cut no run, and tables are aligned.
    const std::size_t unit = std::lcm(cut.run, alignof(std::size_t));
    if (unit > most) {
        cut.run = 0;
        return cut;
    }
    cut.least = std::max(most / kPiecesOfChunk / unit, std::size_t{1}) * unit;
    cut.chunk = most / cut.least * cut.least;
    return cut;
}

// Each thread fills slots of its own, which stay in its cache. Slots that a GPU fills are drained
// by all threads.
Division StagedList::division(const Cut& cut, std::size_t slot_bytes, CpuWork work) {
    const bool own = work == CpuWork::fills;
    return {.slot = cut.chunk,
            .piece = own ? cut.chunk : cut.least,
            .slot_memory = slot_bytes,
            .slots = own ? kSlotsPerThread : kSlotsPerThread * kListThreads,
            .rings = own ? kListThreads : 1};
}

CpuWork StagedList::work_of(const Endpoint& to, const Endpoint& from) {
    const bool to_gpu = to.kind == Endpoint::Kind::device;
    if (to.kind == from.kind) return to_gpu ? CpuWork::none : CpuWork::all;
    return to_gpu ? CpuWork::fills : CpuWork::drains;
}

StagedList::StagedList(Engine& engine, const Endpoint& to, const Endpoint& from, CopyList list,
                       std::size_t slot_bytes)
    : StagedList(engine, to, from, std::move(list), slot_bytes, cut(list, slot_bytes)) {}

StagedList::StagedList(Engine& engine, const Endpoint& to, const Endpoint& from, CopyList&& list,
                       std::size_t slot_bytes, const Cut& cut)
    : Job(list.bytes(), division(cut, slot_bytes, work_of(to, from)), work_of(to, from)),
      to_gpu_(to.kind == Endpoint::Kind::device),
      from_gpu_(from.kind == Endpoint::Kind::device),
      list_(std::move(list)),
      starts_(starts_of(list_)),
      cut_(cut) {
    most_threads_ = kListThreads;
    method_ = WAYWISER_METHOD_LIST_STAGED;
    const int gpu = to_gpu_ ? to.gpu : from.gpu;
    const GpuPlace* place = gpu >= 0 ? engine.machine().gpu(gpu) : nullptr;
    if (place != nullptr) node_ = place->numa;
    Route route;
    if (to_gpu_ || from_gpu_) {
        route.through_host = true;
        route.device = from_gpu_ ? from.gpu : to.gpu;
        route.direction = from_gpu_ ? Direction::out : Direction::in;
    }
    if (to_gpu_ && from_gpu_) {
        route.second_device = to.gpu;
        route.second_direction = Direction::in;
    }
    routes_.push_back(route);
    if (from_gpu_) source_ = std::make_unique<OnGpu>(engine, from.gpu, bytes());
    if (to_gpu_) destination_ = std::make_unique<OnGpu>(engine, to.gpu, bytes());
}

void StagedList::keep_indexes() {
    const auto keep = [](Blocks& blocks, std::vector<std::int64_t>& index) {
        index.assign(blocks.index.begin(), blocks.index.end());
        blocks.index = index;
    };
    keep(list_.to_blocks, to_index_);
    keep(list_.from_blocks, from_index_);
}

std::vector<Piece> StagedList::parts(const Part& part) const {
    const std::size_t block = list_.block;
    const auto piece_at = [&](std::size_t at) {
        if (block != 0) return at / block;
        const auto after = std::ranges::upper_bound(starts_, at);
        return static_cast<std::size_t>(after - starts_.begin()) - 1;
    };
    const std::size_t first = piece_at(part.at);
    const std::size_t last = piece_at(part.end() - 1);
    std::vector<Piece> found;
    const std::span<const Piece> whole = list_.part(first, last - first + 1, found);
    if (block == 0) found.assign(whole.begin(), whole.end());
    // The last piece first: it may be the first one too.
    const auto start_of = [&](std::size_t n) { return block != 0 ? n * block : starts_[n]; };
    found.back().bytes = part.end() - start_of(last);
    Piece& cut = found.front();
    const std::size_t skip = part.at - start_of(first);
    cut = {.to = cut.to + skip,
           .from = cut.from + skip,
           .bytes = cut.bytes - skip,
           .to_begins = skip == 0 && cut.to_begins,
           .from_begins = skip == 0 && cut.from_begins};
    return found;
}

void StagedList::fill(const Part& part, std::byte* slot) {
    for (const Piece& piece : parts(part)) {
        if (to_gpu_) {
            std::memcpy(slot, piece.from, piece.bytes);
            slot += piece.bytes;
        } else {
            std::memcpy(piece.to, piece.from, piece.bytes);
        }
    }
}

void StagedList::drain(const Part& part, const std::byte* slot) {
    for (const Piece& piece : parts(part)) {
        copy_from_slot(piece.to, slot, piece.bytes);
        slot += piece.bytes;
    }
}

void StagedList::submit(std::span<const Submission> made) {
    try {
        for (const Submission& one : made) enqueue(one);
    } catch (const MemoryInUse&) {
        keep_in_use();
        throw;
    }
}

void StagedList::enqueue(const Submission& made) {
    if (from_gpu_) {
        move_on_gpu(*source_, ListSide::from, made, 0, *made.stream, nullptr);
    }
    if (from_gpu_ && to_gpu_) {
        made.handover->record(*made.stream);
        gpu::wait(*made.second, *made.handover);
    }
    if (to_gpu_) {
        move_on_gpu(*destination_, ListSide::to, made, 1, made.last(), made.handover);
    }
}

void StagedList::move_on_gpu(OnGpu& gpu, ListSide side, const Submission& made, std::size_t table,
                             const gpu::Stream& stream, const gpu::Event* after) const {
    const Part& part = made.part;
    std::vector<Piece> buffer;
    if (list_.block != 0 && cut_.run != 0) {
        const ListPart blocks(list_, part.at / list_.block, part.bytes / list_.block, buffer);
        return gpu.move(blocks, side, made.slot, table_of(made.slot, table), stream, after);
    }
    CopyList cut;
    cut.pieces = parts(part);
    const ListPart pieces(cut, 0, cut.pieces.size(), buffer);
    gpu.move(pieces, side, made.slot, table_of(made.slot, table), stream, after);
}

void StagedList::clear() noexcept {
    for (const auto& each : {&source_, &destination_}) {
        if (*each) (*each)->give_back();
    }
}

std::size_t* StagedList::table_of(std::byte* slot, std::size_t number) const {
    if (cut_.run == 0) return nullptr;
    return reinterpret_cast<std::size_t*>(slot + cut_.chunk) + number * (cut_.chunk / cut_.run);
}

// --- on a GPU --------------------------------------------------------------------------------

StagedList::OnGpu::OnGpu(Engine& engine, int gpu, std::size_t list_bytes)
    : lists_(engine.lists()), gpu_(gpu), limits_(limits(engine, gpu, list_bytes)) {}

// Polite chunks wait for their turn in the copy engine: they are short, and have no other stream.
ListLimits StagedList::OnGpu::limits(Engine& engine, int gpu, std::size_t list_bytes) {
    ListLimits limits = list_limits(engine, gpu, list_bytes);
    if (limits.spare_engine) limits.of_pipeline = 0;
    limits.spare_engine = false;
    return limits;
}

void StagedList::OnGpu::move(const ListPart& part, ListSide on_gpu, std::byte* slot,
                             std::size_t* table, const gpu::Stream& stream,
                             const gpu::Event* after) {
    const bool to_gpu = on_gpu == ListSide::to;
    ListTraits traits = part.traits(to_gpu ? ListPath::from_host : ListPath::to_host);
    const std::size_t pitch = to_gpu ? traits.to_pitch : traits.from_pitch;
    if (part.is_of_blocks() && pitch == traits.run) {
        std::byte* const memory = part.base(on_gpu, pitch);
        return gpu::copy_async(to_gpu ? memory : slot, to_gpu ? slot : memory, traits.bytes,
                               stream);
    }
    if (table == nullptr || !has_same_address(slot, gpu_)) {
        return copy_joined(part, on_gpu, slot, stream);
    }
    traits.access = traits.gpu_access;
    traits.host_contiguous = true;  // in the slot
    (to_gpu ? traits.from_pitch : traits.to_pitch) = traits.run;
    ListLimits limits = limits_;
    ListChoice choice = choose_list_method(traits, limits, ListCosts{});
    const Runs listed = runs_of(part, traits, on_gpu, table);
    if (choice.method != ListMethod::batch && choice.method != ListMethod::copies && pitch == 0) {
        part.write_offsets(traits.run, on_gpu, listed.data, table);
    }
    if (choice.method == ListMethod::pipeline) {
        if (move_by_pipeline(listed, slot, on_gpu, choice, stream, after)) return;
        limits.of_pipeline = 0;
        choice = choose_list_method(traits, limits, ListCosts{});
    }
    if (choice.method != ListMethod::kernel) return copy_joined(part, on_gpu, slot, stream);
    const Runs together = Runs::together(slot, traits.bytes);
    launch_list(stream, choice.blocks, to_gpu ? listed : together, to_gpu ? together : listed);
}

bool StagedList::OnGpu::move_by_pipeline(const Runs& listed, std::byte* slot, ListSide on_gpu,
                                         const ListChoice& choice, const gpu::Stream& stream,
                                         const gpu::Event* after) {
    const std::lock_guard lock(mutex_);
    if (has_none_) return false;
    if (!pipeline_) {
        pipeline_ = lists_.take_pipeline(stream);
        has_none_ = pipeline_ == nullptr;
        if (has_none_) return false;
        (*pipeline_)->start_after(stream, limits_.list_bytes);
    }
    ListPipeline& pipeline = **pipeline_;
    try {
        if (after != nullptr) pipeline.wait(*after);
        if (on_gpu == ListSide::to) {
            pipeline.scatter(listed, slot, choice.chunk, choice.blocks);
        } else {
            pipeline.gather(slot, listed, choice.chunk, choice.blocks);
        }
        pipeline.finish_before(stream);
    } catch (...) {
        // What was enqueued uses the slot: the stream has to follow it.
        try {
            pipeline.finish_before(stream);
            pipeline.join();
        } catch (const gpu::Error&) {
            if (lists_.drop(gpu_, std::move(pipeline_)) == Settled::no) {
                throw MemoryInUse("a list could not be moved, and its GPU does not answer");
            }
        }
        throw;
    }
    return true;
}

void StagedList::OnGpu::give_back() noexcept {
    const std::lock_guard lock(mutex_);
    if (pipeline_) lists_.give_back(gpu_, std::move(pipeline_));
}

}  // namespace waywiser::transfer
