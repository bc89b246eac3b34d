#include "transfer/copy_streams.hpp"

#include <algorithm>

namespace waywiser::transfer {

CopyStreams::Lease::~Lease() {
    if (is_kept_) return;
    const std::lock_guard lock(owner_.mutex_);
    --stream_.leases;
}

const gpu::Stream& CopyStreams::Lease::operator*() const { return stream_.stream; }

gpu::Stream& CopyStreams::of(const Lane& lane) {
    const std::lock_guard lock(mutex_);
    const auto known = streams_.find(lane);
    if (known != streams_.end()) return known->second;
    return streams_.emplace(lane, gpu::Stream(lane.first)).first->second;
}

CopyStreams::Lease CopyStreams::beside(int device, const void* callers, Use use) {
    const bool of_thread = CallerStream{.handle = const_cast<void*>(callers)}.is_per_thread();
    const Caller caller(callers, of_thread ? std::this_thread::get_id() : std::thread::id(), use);
    const std::lock_guard lock(mutex_);
    std::list<Beside>& all = beside_[device];
    auto found = std::ranges::find(all, caller, &Beside::caller);
    if (found == all.end()) {
        found = std::ranges::find_if(
            all, [](const Beside& one) { return one.leases == 0 && one.stream.done(); });
    }
    if (found == all.end()) {
        all.push_back({.stream = gpu::Stream(device), .caller = caller});
        found = std::prev(all.end());
    }
    found->caller = caller;
    ++found->leases;
    return {*this, *found};
}

std::size_t CopyStreams::size() const {
    const std::lock_guard lock(mutex_);
    std::size_t count = streams_.size();
    for (const auto& [device, all] : beside_) count += all.size();
    return count;
}

}  // namespace waywiser::transfer
