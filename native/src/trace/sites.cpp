#include "trace/sites.hpp"

namespace waywiser::trace {
namespace {

constexpr std::size_t kMostSites = 1 << 16, kMostFramesInAll = 1 << 17;

}  // namespace

Sites::Sites() : frames_(1), sites_(1) { site_ids_.emplace(std::vector<FrameId>{}, kUnknownSite); }

FrameId Sites::frame(const Frame& frame) {
    const std::lock_guard lock(mutex_);
    FrameKey key{frame.python, frame.place, frame.function, frame.line, frame.offset};
    const auto found = frame_ids_.find(key);
    if (found != frame_ids_.end()) return found->second;
    if (frames_.size() >= kMostFramesInAll) return 0;
    frames_.push_back(frame);
    const auto id = static_cast<FrameId>(frames_.size() - 1);
    frame_ids_.emplace(std::move(key), id);
    return id;
}

SiteId Sites::site(std::span<const FrameId> innermost_first) {
    std::vector<FrameId> key(innermost_first.begin(), innermost_first.end());
    std::erase(key, FrameId{0});
    const std::lock_guard lock(mutex_);
    const auto found = site_ids_.find(key);
    if (found != site_ids_.end()) return found->second;
    if (sites_.size() >= kMostSites) return kUnknownSite;
    sites_.push_back(key);
    const auto id = static_cast<SiteId>(sites_.size() - 1);
    site_ids_.emplace(std::move(key), id);
    return id;
}

std::vector<std::vector<Frame>> Sites::all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::vector<Frame>> result;
    result.reserve(sites_.size());
    for (const std::vector<FrameId>& site : sites_) {
        std::vector<Frame>& frames = result.emplace_back();
        for (const FrameId id : site) frames.push_back(frames_[id]);
    }
    return result;
}

}  // namespace waywiser::trace
