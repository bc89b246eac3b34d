#include "transfer/copy_streams.hpp"

namespace waywiser::transfer {

gpu::Stream& CopyStreams::of(const Lane& lane) {
    const std::lock_guard lock(mutex_);
    const auto known = streams_.find(lane);
    if (known != streams_.end()) return known->second;
    return streams_.emplace(lane, gpu::Stream(lane.first)).first->second;
}

gpu::Stream& CopyStreams::beside(int device, const void* callers) {
    const std::lock_guard lock(mutex_);
    const auto known = beside_.find({device, callers});
    if (known != beside_.end()) return known->second;
    return beside_.emplace(std::pair(device, callers), gpu::Stream(device)).first->second;
}

void CopyStreams::assign(const Route& route, Chunk& chunk) {
    chunk.stream = &of(route.lane());
    if (route.second_device >= 0) {
        chunk.second = &of({route.second_device, route.second_direction});
    }
}

}  // namespace waywiser::transfer
