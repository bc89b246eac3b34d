// Submits the chunks of a job that gathers: those of a route that are ready, by one call.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "transfer/batch.hpp"
#include "transfer/copy_streams.hpp"
#include "transfer/event_pool.hpp"
#include "transfer/held_chunk.hpp"
#include "transfer/schedule.hpp"
#include "transfer/staging_pools.hpp"

namespace waywiser::transfer {

// Thread safe: the locks are those of the job's RouteBatches. The Schedule, the pools and the job
// are called with at most `submitting` held, for which no thread waits: one that finds it taken
// goes on, and the thread that has it looks again. The parts must outlive this.
class BatchSubmission {
public:
    BatchSubmission(Schedule& schedule, const EventPool& events, CopyStreams& streams,
                    const StagingPools& staging)
        : schedule_(schedule), events_(events), streams_(streams), staging_(staging) {}

    // Gives a chunk its streams. Throws gpu::Error.
    void prepare(HeldChunk& held) { streams_.assign(held.route(), held.chunk); }
    // Adds a filled chunk after prepare(), and submits what is ready. From now on the chunk must
    // stay where it is until ended().
    void add(HeldChunk& held);
    // Whether an added chunk is not in flight any more; then `arrived` is whether it was copied.
    bool ended(HeldChunk& held, bool& arrived);

private:
    void submit_ready(Job& job, std::size_t route);
    void end_batches(Job& job, std::size_t route);
    bool submit_batch(Job& job, std::size_t route, std::size_t& left);
    [[nodiscard]] bool has_enough(const Job& job, const RouteBatches& own) const;
    std::vector<Chunk*> take_ready(RouteBatches& own, Batch& batch, std::size_t& left) const;
    void enqueue(Job& job, const Route& route, const std::vector<Chunk*>& chunks, Batch& batch);

    Schedule& schedule_;
    const EventPool& events_;
    CopyStreams& streams_;
    const StagingPools& staging_;
};

}  // namespace waywiser::transfer
