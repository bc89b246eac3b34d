// Memory for lists that are moved on callers' streams: tables for kernels, and pipelines through
// staging memory on a GPU.
//
// A kernel uses its tables until the caller's stream reaches it, which may be never. So they are
// separate from the staging memory of jobs, small and bounded. If no table or pipeline is free,
// lists are copied without instead of waiting. Their memory on a GPU is in the budget of all that
// an engine has there.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/event_pool.hpp"
#include "transfer/list_pipeline.hpp"
#include "transfer/staging.hpp"
#include "transfer/staging_pools.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// A table to be copied to a GPU; returned by ListStaging::retire().
struct Table {
    Slot pinned;     // filled by the CPU
    Slot on_device;  // of the same size
};

// Thread safe. Its lock guards what it keeps; events are queried and given back to their pool with
// it held. Memory is allocated without it. Call stop() before the destructor.
class ListStaging {
public:
    // Pinned memory is limited to `pinned_bytes`. Calls `warn` with the reason if memory cannot be
    // pinned. The pools must outlive this.
    ListStaging(std::size_t pinned_bytes, StagingPools& pools, const EventPool& events,
                std::function<void(const std::string&)> warn);
    ~ListStaging();
    ListStaging(const ListStaging&) = delete;
    ListStaging& operator=(const ListStaging&) = delete;

    // Memory for a table of `bytes`; nullopt if none is free now or allocation fails. Throws
    // gpu::Error for other failures.
    std::optional<Table> take(int device, std::size_t bytes);
    // Frees a table once the work now in the stream is done. If no event can be created, waits for
    // that. A GPU that does not answer keeps it.
    void retire(Table table, const gpu::Stream& stream);
    // The largest pipeline that fits into the budget of a GPU; its chunk is 0 if none does.
    [[nodiscard]] PipelineShape largest_pipeline(int device);
    // A pipeline for a list in a stream; nullptr if none is free now or allocation fails. One whose
    // moves are not done is free only for the stream that follows them. Throws gpu::Error for other
    // failures.
    std::unique_ptr<OwnPipeline> take_pipeline(const gpu::Stream& stream);
    // After its moves for the list, and finish_before() the stream.
    void give_back(int device, std::unique_ptr<OwnPipeline> pipeline);
    // After a failure that may have left moves without an order: waits for them, and frees the
    // pipeline. A GPU that does not answer keeps it (`no`), and may use the memory of the list.
    Settled drop(int device, std::unique_ptr<OwnPipeline> pipeline) noexcept;
    // Number of multiprocessors of a GPU.
    unsigned multiprocessors(int device);
    // Waits for work in progress; false if it has not ended before the deadline: this must not be
    // destroyed then. Afterwards take() returns nullopt.
    [[nodiscard]] bool stop(const Deadline& deadline) noexcept;

    [[nodiscard]] std::size_t pinned_bytes() const;
    // The streams of all pipelines.
    [[nodiscard]] std::size_t streams() const;

private:
    struct Retired {
        std::shared_ptr<gpu::Event> event;
        Table table;
    };
    struct Pipelines;
    void reap(int device);

    Budget pinned_budget_;
    StagingPools& pools_;
    const EventPool& events_;
    const std::function<void(const std::string&)> warn_;

    mutable std::mutex mutex_;
    std::unique_ptr<Slots> pinned_;
    std::map<int, std::unique_ptr<Slots>> on_device_;
    std::map<int, std::vector<Retired>> retired_;  // by device; streams end in any order
    std::map<int, unsigned> multiprocessors_;
    std::map<int, Pipelines> pipelines_;  // by device
    bool stopped_ = false;
};

}  // namespace waywiser::transfer
