// A workload between ranks, in which this process has a share: transfers, or the operation
// barrier-skew. All its ranks run one; the lowest leads: it takes the samples, and says between
// them what the others do.
//
// Between samples the ranks exchange commands and times by messages. Each timed part begins after a
// barrier. The clock of a transfer between two ranks is that of its source's rank; among several,
// each has one, and the slowest counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "measure/buffers.hpp"
#include "measure/prepared_workload.hpp"
#include "measure/timer.hpp"
#include "ranks/messenger.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

class RankWorkload {
public:
    // The ranks of a workload, in order. Throws what executors throw.
    static std::vector<int> ranks_of(const Request& request, const Machine& machine);
    // Called by all of them. `world` numbers the ranks as places do. Throws
    // NotSupported before any message, and what memory kinds and messages throw.
    RankWorkload(const Request& request, const Machine& machine, BufferPool& pool, Streams& streams,
                 ranks::Messenger& world);
    ~RankWorkload();
    RankWorkload(const RankWorkload&) = delete;
    RankWorkload& operator=(const RankWorkload&) = delete;

    [[nodiscard]] bool leads() const { return group_->rank() == 0; }
    // By the leader, which must end the workload. check() throws WrongBytes in all ranks if any has
    // some.
    void fill();
    void check();
    [[nodiscard]] Timer& timer() { return *timer_; }
    void end();
    // What the others do until the leader ends it.
    void follow();

    // The buffers of the memories in this process, in the order of the transfers.
    [[nodiscard]] std::vector<PlacedBuffer> placements() const;
    [[nodiscard]] std::size_t buffer_bytes() const;

private:
    struct Share;
    class GroupTimer;
    enum class Command : std::uint64_t { fill, check, take, end };

    void allocate(std::size_t index, BufferPool& pool, Streams& streams);
    [[nodiscard]] int gpu_of(const Memory& source, const Memory& destination) const;
    void prepare(Share& share);
    // Runs `work` in this rank. If it throws in any, throws in all.
    void together(const std::function<void()>& work);
    // By the leader, to the others.
    void say(Command command, std::size_t repetitions = 0);
    void fill_own();
    void check_own();
    Timing take_own(std::size_t repetitions);

    const Request& request_;
    const Machine& machine_;
    int rank_;                  // in the world
    std::vector<int> members_;  // ranks of the world, in order
    std::unique_ptr<ranks::Messenger> group_;
    std::vector<std::unique_ptr<Share>> shares_;
    // Of each transfer; then the number of all clocks.
    std::vector<std::size_t> first_clocks_{0};
    std::unique_ptr<Timer> timer_;
};

}  // namespace waywiser::measure
