#include "transfer/list_staging.hpp"

#include <algorithm>
#include <new>

#include "transfer/process_state.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kListSlabBytes = std::size_t{2} << 20;

// As many lists in different streams are moved at once.
constexpr std::size_t kMostPipelines = 4;
constexpr std::size_t kStreamsOfPipeline = 3;
// Pipelines leave this part of a GPU's budget, or this much, to tables.
constexpr std::size_t kTableFraction = 8;
constexpr std::size_t kMostForTables = std::size_t{4} << 20;

constexpr Polling kStopping{.spin = std::chrono::milliseconds(1),
                            .pause = std::chrono::microseconds(2),
                            .sleep = std::chrono::microseconds(100)};

std::size_t without_tables(std::size_t bytes, std::size_t budget) {
    return bytes - std::min({bytes, budget / kTableFraction, kMostForTables});
}

std::optional<Slot> take_or_nothing(Slots& pool, std::size_t bytes) {
    try {
        return pool.take(bytes);
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    } catch (const gpu::Error& error) {
        if (error.kind() != gpu::Failure::out_of_memory) throw;
        return std::nullopt;
    }
}

}  // namespace

// The pipelines of a device that no thread has taken now, and the number of all.
struct ListStaging::Pipelines {
    std::vector<std::unique_ptr<OwnPipeline>> idle;
    std::size_t all = 0;
};

ListStaging::ListStaging(std::size_t pinned_bytes, StagingPools& pools, const EventPool& events,
                         std::function<void(const std::string&)> warn)
    : pinned_budget_(pinned_bytes), pools_(pools), events_(events), warn_(std::move(warn)) {}

ListStaging::~ListStaging() = default;

std::optional<Table> ListStaging::take(int device, std::size_t bytes) {
    if (pinned_budget_.most() == 0) return std::nullopt;
    Slots* pinned = nullptr;
    Slots* on_device = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) return std::nullopt;
        reap(device);
        if (!pinned_) {
            pinned_ = std::make_unique<Slots>(
                pinned_budget_, kListSlabBytes,
                [this, device](std::size_t size) {
                    return pools_.counted(pinned_slab(size, pools_.usable_node(-1), device, warn_),
                                          size);
                },
                [] {});
        }
        auto& own = on_device_[device];
        if (!own) {
            own = std::make_unique<Slots>(
                pools_.device_budget(device), kListSlabBytes,
                [device](std::size_t size) { return device_slab(size, device); }, [] {});
        }
        pinned = pinned_.get();
        on_device = own.get();
    }
    auto there = take_or_nothing(*on_device, bytes);
    if (!there) return std::nullopt;
    auto here = take_or_nothing(*pinned, bytes);
    if (!here) return std::nullopt;
    return Table{.pinned = std::move(*here), .on_device = std::move(*there)};
}

void ListStaging::retire(Table table, const gpu::Stream& stream) {
    try {
        std::shared_ptr<gpu::Event> event = events_.take(stream.device());
        event->record(stream);
        const std::lock_guard lock(mutex_);
        if (!stopped_) {
            retired_[stream.device()].push_back({std::move(event), std::move(table)});
            return;
        }
    } catch (const gpu::Error& error) {
        if (error.kind() == gpu::Failure::sticky) throw;
    }
    const Settled now = settle(stream);
    if (now == Settled::yes) return;
    table.pinned.abandon(now);
    table.on_device.abandon(now);
}

PipelineShape ListStaging::largest_pipeline(int device) {
    const std::size_t most = pools_.device_budget(device).most();
    return pipeline_within(without_tables(most, most));
}

namespace {

// One that the stream used last, else one that is done; nullptr if there is none.
template <class Pipelines>
std::unique_ptr<OwnPipeline> take_idle(Pipelines& idle, const gpu::Stream& stream) {
    auto found = std::ranges::find_if(
        idle, [&](const auto& one) { return (*one)->last_stream() == stream.handle(); });
    for (auto one = idle.begin(); found == idle.end() && one != idle.end(); ++one) {
        if ((**one)->done()) found = one;
    }
    if (found == idle.end()) return nullptr;
    std::unique_ptr<OwnPipeline> taken = std::move(*found);
    idle.erase(found);
    return taken;
}

}  // namespace

std::unique_ptr<OwnPipeline> ListStaging::take_pipeline(const gpu::Stream& stream) {
    const int device = stream.device();
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) return nullptr;
        Pipelines& own = pipelines_[device];
        if (auto idle = take_idle(own.idle, stream)) return idle;
        if (own.all == kMostPipelines) return nullptr;
        ++own.all;
    }
    const auto uncount = [&] {
        const std::lock_guard lock(mutex_);
        --pipelines_[device].all;
    };
    Budget& budget = pools_.device_budget(device);
    const PipelineShape shape = pipeline_within(without_tables(budget.left(), budget.most()));
    if (shape.chunk == 0 || !budget.take(shape.bytes())) {
        uncount();
        return nullptr;
    }
    try {
        return std::make_unique<OwnPipeline>(device, shape, BudgetShare(budget, shape.bytes()));
    } catch (const gpu::Error& error) {
        uncount();
        if (error.kind() != gpu::Failure::out_of_memory) throw;
        return nullptr;
    } catch (...) {
        uncount();
        throw;
    }
}

void ListStaging::give_back(int device, std::unique_ptr<OwnPipeline> pipeline) {
    const std::lock_guard lock(mutex_);
    Pipelines& own = pipelines_[device];
    if (pipeline != nullptr && !stopped_) return own.idle.push_back(std::move(pipeline));
    --own.all;
}

Settled ListStaging::drop(int device, std::unique_ptr<OwnPipeline> pipeline) noexcept {
    const Settled now = (*pipeline)->settle();
    if (now == Settled::no) {
        keep_for_ever(pipeline.release());  // and counted
        return now;
    }
    pipeline.reset();
    give_back(device, nullptr);
    return now;
}

unsigned ListStaging::multiprocessors(int device) {
    const std::lock_guard lock(mutex_);
    const auto known = multiprocessors_.find(device);
    if (known != multiprocessors_.end()) return known->second;
    const auto count = static_cast<unsigned>(gpu::device(device).multiprocessors);
    return multiprocessors_.emplace(device, count).first->second;
}

void ListStaging::reap(int device) {
    auto& own = retired_[device];
    for (std::size_t i = 0; i < own.size();) {
        if (!own[i].event->done()) {
            ++i;
            continue;
        }
        if (i + 1 != own.size()) own[i] = std::move(own.back());
        own.pop_back();
    }
}

bool ListStaging::stop(const Deadline& deadline) noexcept {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    const auto ends = [&](const auto& work) {
        try {
            return poll([&] { return work.done(); }, deadline, kStopping);
        } catch (const gpu::Error&) {  // a lost context: nothing is in flight any more
            return true;
        }
    };
    bool all = true;
    for (const auto& [device, own] : retired_) {
        for (const Retired& one : own) all = ends(*one.event) && all;
    }
    for (const auto& [device, own] : pipelines_) {
        for (const auto& one : own.idle) all = ends(**one) && all;
    }
    if (!all) return false;
    retired_.clear();
    pipelines_.clear();
    return true;
}

std::size_t ListStaging::streams() const {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& [device, own] : pipelines_) count += own.all * kStreamsOfPipeline;
    return count;
}

std::size_t ListStaging::pinned_bytes() const {
    const std::lock_guard lock(mutex_);
    return pinned_ ? pinned_->bytes() : 0;
}

}  // namespace waywiser::transfer
