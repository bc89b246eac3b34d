#include "transfer/peer_access.hpp"

#include <algorithm>

#include "gpu/gpu.hpp"

namespace waywiser::transfer {

bool PeerAccess::are_peers(int one, int other) const {
    const auto sees = [this](int gpu, int peer) {
        const GpuPlace* place = machine_.gpu(gpu);
        return place != nullptr && std::ranges::find(place->peers, peer) != place->peers.end();
    };
    return allowed_ && sees(one, other) && sees(other, one);
}

bool PeerAccess::enable(int one, int other) {
    if (!are_peers(one, other)) return false;
    const std::lock_guard lock(mutex_);
    if (enabled_.contains({one, other})) return true;
    gpu::enable_peer_access(one, other);
    gpu::enable_peer_access(other, one);
    enabled_.insert({one, other});
    enabled_.insert({other, one});
    return true;
}

}  // namespace waywiser::transfer
