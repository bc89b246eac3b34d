// One pass over a range of bytes, by several threads if the range is large enough.
#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

#include "affinity.hpp"
#include "start_thread.hpp"
#include "waywiser/huge_page.hpp"

namespace waywiser::host {

inline constexpr std::size_t kWorthAThread = std::size_t{4}
                                             << 20;  // bytes; starting threads costs more for less
inline constexpr std::size_t kMostThreads = 16;

// Calls pass(from, to) for pieces that cover [0, bytes) in order, on threads that run on `cpus`; on
// the calling thread if one is enough, or if the system starts no other.
template <class Pass>
void parallel(std::size_t bytes, const std::vector<int>& cpus, const Pass& pass) {
    const std::size_t most = std::clamp<std::size_t>(cpus.size(), 1, kMostThreads);
    const std::size_t threads = std::clamp<std::size_t>(bytes / kWorthAThread, 1, most);
    // Shares meet at huge pages, unless a huge page has more bytes than a share.
    const std::size_t unit =
        bytes / threads < huge_page_bytes() ? kSmallHugePage : huge_page_bytes();
    const std::size_t share = (bytes / threads + unit) & ~(unit - 1);
    if (threads == 1) {
        const RunOn here(cpus);
        pass(std::size_t{0}, bytes);
        return;
    }
    std::vector<std::jthread> team;
    for (std::size_t from = 0; from < bytes; from += share) {
        const auto pass_share = [&, from] { pass(from, std::min(bytes, from + share)); };
        try {
            team.push_back(start_thread([&cpus, pass_share] {
                run_on(cpus);
                pass_share();
            }));
        } catch (const NoThread&) {
            const RunOn here(cpus);
            pass_share();
        }
    }
}

}  // namespace waywiser::host
