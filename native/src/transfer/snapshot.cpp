#include "transfer/snapshot.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "transfer/byte_text.hpp"
#include "transfer/describe.hpp"
#include "transfer/ordering.hpp"
#include "transfer/profiler.hpp"
#include "transfer/side.hpp"
#include "transfer/staged_list.hpp"

namespace waywiser::transfer {
namespace {

// Bytes of one copy into pinned memory. The copy engine takes turns between streams after each
// copy, so that a small copy of the program does not wait for the whole snapshot: 8 MiB take 0.15
// ms over a PCIe 5.0 link. But the runtime blocks the host when about a thousand calls are in a
// stream.
constexpr std::size_t kTurn = std::size_t{8} << 20;
constexpr std::size_t kMostTurns = 256;

// What both sides of all pieces are.
struct Sides {
    int gpu = -1;
    bool pinned = true;
};

// Also notes which pieces begin an allocation of the GPU.
Sides sides_of(CopyList& list) {
    Sides all;
    bool first = true;
    for (Piece& piece : list.pieces) {
        piece.from_begins = gpu::pointer_info(piece.from).start == piece.from;
        const Side from = side_of(const_cast<std::byte*>(piece.from), piece.bytes);
        const Side to = side_of(piece.to, piece.bytes);
        if (from.end.kind != Endpoint::Kind::device || from.managed) {
            throw InvalidCopy("a snapshot: a source is not memory of a GPU: copy it instead");
        }
        if (to.end.kind != Endpoint::Kind::host || to.managed) {
            throw InvalidCopy("a snapshot: a destination is not host memory: pass host memory");
        }
        if (!first && from.end.gpu != all.gpu) {
            throw InvalidCopy("a snapshot: the sources are on several GPUs: make one for each");
        }
        all.gpu = from.end.gpu;
        all.pinned = all.pinned && to.end.pinned;
        first = false;
    }
    return all;
}

// Several calls of at most `turn` bytes, cut at the borders of registrations.
void enqueue(const Piece& piece, std::size_t turn, const gpu::Stream& queue) {
    std::size_t at = 0;
    for (const Segment& part : segments(piece.to, piece.bytes)) {
        for (std::size_t done = 0; done < part.bytes; done += turn) {
            const std::size_t bytes = std::min(turn, part.bytes - done);
            gpu::copy_async(piece.to + at, piece.from + at, bytes, queue);
            at += bytes;
        }
    }
}

Completion copy_beside(Engine& engine, const CopyList& list, const Ordering& order) {
    const gpu::Stream& callers = *order.stream;
    CopyStreams::Lease lease =
        engine.streams().beside(callers.device(), callers.handle(), CopyStreams::Use::snapshot);
    const gpu::Stream& queue = *lease;
    const std::shared_ptr<gpu::Event> after = order.events->take(callers.device());
    gpu::wait(queue, *recorded(order));
    const std::size_t turn = std::max(kTurn, list.bytes() / kMostTurns);
    try {
        engine.statistics().count_call(WAYWISER_METHOD_SNAPSHOT, list.bytes(), [&] {
            for (const Piece& piece : merged(list.pieces)) enqueue(piece, turn, queue);
            after->record(queue);
            return true;
        });
    } catch (const gpu::Error&) {
        rethrow_when_settled(lease);  // the pieces before
    }
    return {list.bytes(), after};
}

}  // namespace

Completion snapshot(const std::shared_ptr<Engine>& engine, CopyList list,
                    const CallerStream& stream) {
    engine->check_process();
    if (list.count() == 0) return Completion(0);
    const gpu::CallerState keep;
    const ProfilerRange range(
        [&] { return "waywiser snapshot " + text_of_list(list.bytes(), list.count()); });
    list.make_pieces();
    const Sides sides = sides_of(list);
    const Ordering order = ordering(*engine, stream, sides.gpu);
    if (order.capturing) {
        throw NotSupported("the stream is being captured: make the snapshot before the capture");
    }
    if (sides.pinned) return copy_beside(*engine, list, order);
    const Endpoint host = Endpoint::host(list.pieces.front().to, false);
    const std::size_t slot_bytes = list_slot_bytes(list.bytes());
    auto job = std::make_shared<StagedList>(*engine, host, Endpoint::device(nullptr, sides.gpu),
                                            std::move(list), slot_bytes);
    job->count_as(WAYWISER_METHOD_SNAPSHOT_STAGED);
    engine->start(job, after(order));
    return {engine, std::move(job)};
}

}  // namespace waywiser::transfer
