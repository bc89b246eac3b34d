#include "transfer/list_staging.hpp"

#include <algorithm>
#include <new>

#include "transfer/list_pipeline.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kListSlabBytes = std::size_t{2} << 20;

// Staging memory on a GPU: as many lists in different streams are moved at once.
constexpr std::size_t kMostPipelines = 4;

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

ListStaging::ListStaging(std::size_t budget, NumaNode node, EventPool& events,
                         std::function<void(const std::string&)> warn)
    : budget_(budget), node_(std::move(node)), events_(events), warn_(std::move(warn)) {}

ListStaging::~ListStaging() = default;

std::optional<Table> ListStaging::take(int device, std::size_t bytes) {
    if (budget_ == 0) return std::nullopt;
    Slots* pinned = nullptr;
    Slots* on_device = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) return std::nullopt;
        reap(device);
        if (!pinned_) {
            pinned_ = std::make_unique<Slots>(
                budget_, kListSlabBytes,
                [this, device](std::size_t size) {
                    return pinned_slab(size, node_, device, warn_);
                },
                [] {});
        }
        auto& own = on_device_[device];
        if (!own) {
            own = std::make_unique<Slots>(
                budget_, kListSlabBytes,
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
        gpu::Event event = events_.take(stream.device());
        event.record(stream);
        const std::lock_guard lock(mutex_);
        if (!stopped_) {
            retired_[stream.device()].push_back({std::move(event), std::move(table)});
            return;
        }
    } catch (const gpu::Error& error) {
        if (error.kind() == gpu::Failure::sticky) throw;
    }
    stream.synchronize();
}

std::unique_ptr<OwnPipeline> ListStaging::take_pipeline(const gpu::Stream& stream) {
    const int device = stream.device();
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) return nullptr;
        Pipelines& own = pipelines_[device];
        const auto follows = [&](const auto& one) {
            return (*one)->last_stream() == stream.handle();
        };
        auto found = std::ranges::find_if(own.idle, follows);
        if (found == own.idle.end()) {
            found = std::ranges::find_if(own.idle, [](const auto& one) { return (*one)->done(); });
        }
        if (found != own.idle.end()) {
            std::unique_ptr<OwnPipeline> taken = std::move(*found);
            own.idle.erase(found);
            return taken;
        }
        if (own.all == kMostPipelines) return nullptr;
        ++own.all;
    }
    const auto uncount = [&] {
        const std::lock_guard lock(mutex_);
        --pipelines_[device].all;
    };
    try {
        return std::make_unique<OwnPipeline>(device, PipelineShape{});
    } catch (const gpu::Error& error) {
        uncount();
        if (error.kind() != gpu::Failure::out_of_memory) throw;
        return nullptr;
    }
}

void ListStaging::give_back(int device, std::unique_ptr<OwnPipeline> pipeline) {
    const std::lock_guard lock(mutex_);
    Pipelines& own = pipelines_[device];
    if (pipeline != nullptr && !stopped_) return own.idle.push_back(std::move(pipeline));
    --own.all;
}

gpu::Stream& ListStaging::legacy_substitute(int device) {
    const std::lock_guard lock(mutex_);
    const auto known = streams_.find(device);
    if (known != streams_.end()) return known->second;
    return streams_.emplace(device, gpu::Stream(device)).first->second;
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
        if (!own[i].event.done()) {
            ++i;
            continue;
        }
        events_.give_back(device, std::move(own[i].event));
        if (i + 1 != own.size()) own[i] = std::move(own.back());
        own.pop_back();
    }
}

void ListStaging::stop() noexcept {
    std::map<int, std::vector<Retired>> waited;
    std::map<int, Pipelines> pipelines;  // their destructors wait
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        waited.swap(retired_);
        pipelines.swap(pipelines_);
    }
    for (const auto& [device, all] : waited) {
        for (const Retired& one : all) {
            try {
                one.event.synchronize();
            } catch (const gpu::Error&) {  // a lost context: nothing is in flight any more
            }
        }
    }
}

std::size_t ListStaging::pinned_bytes() const {
    const std::lock_guard lock(mutex_);
    return pinned_ ? pinned_->bytes() : 0;
}

}  // namespace waywiser::transfer
