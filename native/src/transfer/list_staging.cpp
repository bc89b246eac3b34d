#include "transfer/list_staging.hpp"

#include <new>

namespace waywiser::transfer {
namespace {

constexpr std::size_t kListSlabBytes = std::size_t{2} << 20;

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
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        waited.swap(retired_);
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
