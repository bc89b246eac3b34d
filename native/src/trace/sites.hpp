// Call sites: chains of frames, each kept once and named by a number.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace waywiser::trace {

struct Frame {
    bool python = false;
    std::string place;     // the file, or the module of native code
    std::string function;  // empty: unknown
    std::int64_t line = 0;
    std::uint64_t offset = 0;  // in the module
};

using FrameId = std::uint32_t;
using SiteId = std::uint32_t;

constexpr SiteId kUnknownSite = 0;  // without frames
constexpr std::size_t kMostFrames = 16;

// May be used by several threads. Frames and sites are never removed, and their number is bounded:
// what is beyond is the unknown site.
class Sites {
public:
    Sites();
    FrameId frame(const Frame& frame);
    SiteId site(std::span<const FrameId> innermost_first);
    // Copies of what there is, in the order of their numbers.
    std::vector<std::vector<Frame>> all() const;

private:
    using FrameKey = std::tuple<bool, std::string, std::string, std::int64_t, std::uint64_t>;

    mutable std::mutex mutex_;
    std::deque<Frame> frames_;
    std::map<FrameKey, FrameId> frame_ids_;
    std::deque<std::vector<FrameId>> sites_;
    std::map<std::vector<FrameId>, SiteId> site_ids_;
};

}  // namespace waywiser::trace
