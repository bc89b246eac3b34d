#include "executor/cpu_mover.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "executor/pieces.hpp"
#include "host/streaming.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kLine =
    64;  // shares are cut at cache lines, so that two threads never share one

std::vector<std::vector<int>> others(const std::vector<int>& cpus, std::size_t threads) {
    std::vector<std::vector<int>> team;
    for (std::size_t i = 1; i < threads; ++i) team.push_back({cpus[i % cpus.size()]});
    return team;
}

// Shares are multiples of this many bytes: whole runs if there are enough for all threads.
std::size_t grain(const View& view, std::size_t threads) {
    const Arrangement* arrangement = view.arrangement;
    return arrangement != nullptr && arrangement->count >= threads ? arrangement->run : kLine;
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes, bool streaming) {
    if (streaming) {
        host::copy_streaming(to, from, bytes);
    } else {
        std::memcpy(to, from, bytes);
    }
}

}  // namespace

CpuMover::CpuMover(const std::vector<int>& cpus, std::size_t threads, bool streaming)
    : threads_(threads), streaming_(streaming), team_(others(cpus, threads)) {}

void CpuMover::wake() {
    const std::function<void(std::size_t)> nothing = [](std::size_t) {};
    team_.start(nothing);
    team_.join();
}

void CpuMover::move(const View& destination, const View& source) {
    const auto part = [&](std::size_t from, std::size_t to) {
        for_each_piece(destination, source, from, to,
                       [this](std::byte* target, const std::byte* origin, std::size_t bytes) {
                           copy(target, origin, bytes, streaming_);
                       });
    };
    if (threads_ == 1) {
        part(0, source.bytes);
        return;
    }
    const std::size_t unit = grain(source.arrangement == nullptr ? destination : source, threads_);
    const std::size_t piece = (source.bytes + threads_ * unit - 1) / (threads_ * unit) * unit;
    const auto share = [&](std::size_t thread) {
        const std::size_t from = std::min(source.bytes, thread * piece);
        part(from, std::min(source.bytes, from + piece));
    };
    const std::function<void(std::size_t)> others_job = [&](std::size_t i) { share(i + 1); };
    team_.start(others_job);
    share(0);
    team_.join();
}

std::vector<std::string> thread_choices(std::size_t most) {
    std::vector<std::string> choices;
    for (std::size_t n = 1; n < most; n *= 2) choices.push_back(std::to_string(n));
    choices.push_back(std::to_string(std::max<std::size_t>(most, 1)));
    return choices;
}

}  // namespace waywiser
