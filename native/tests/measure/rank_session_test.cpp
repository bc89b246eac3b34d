// Workloads between ranks that are threads, over the fake GPU.
#include <mutex>
#include <set>

#include "measure/rank_measurements.hpp"
#include "measure/session_test.hpp"
#include "ranks/rank_places.hpp"
#include "ranks/thread_messenger.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

using ranks::Messenger;
using test::ThreadWorld;

// A GPU for each rank while there are some.
Machine machine_of(int ranks) {
    const int gpus = gpu::device_count();
    return test::with_ranks(ranks, [&](int rank) { return gpus == 0 ? -1 : rank % gpus; });
}

class RankSession : public test::OnFake {
protected:
    ~RankSession() override { fake::reset(); }

    // What each rank found, in order.
    static std::vector<Outcome> measure(ThreadWorld& world, const Request& request) {
        const Machine machine = machine_of(world.size());
        std::vector<Outcome> found(world.size());
        world.run([&](Messenger& messenger) {
            Session session(machine, {.messenger = &messenger});
            const auto is_own = [&](const Transfer& transfer) {
                return transfer.path.source.place.index == messenger.rank() ||
                       transfer.path.destination.place.index == messenger.rank();
            };
            if (std::ranges::none_of(request.transfers, is_own)) return;
            found[messenger.rank()] = session.measure(request, nullptr);
        });
        return found;
    }

    static Transfer transfer(const char* source, int from, const char* destination, int to,
                             const char* executor, std::size_t bytes,
                             const Settings& parameters = {}) {
        const Path path{{source, {Place::Kind::rank, from, {}}, {}},
                        {destination, {Place::Kind::rank, to, {}}, {}},
                        executor};
        return {path, bytes, parameters};
    }
    static Request request(std::vector<Transfer> transfers) {
        StopRule few = kQuick;
        few.minimum = few.slow_minimum = 2;
        few.maximum = 3;
        return {.transfers = std::move(transfers), .operation = {}, .rule = few};
    }
};

std::vector<Settings> settings_of(const std::string& executor) {
    if (executor == "mpi") {
        return {{}, {{"window", "16"}}, {{"test", "bw"}}, {{"test", "bw"}, {"window", "4"}}};
    }
    return {{},
            {{"chunk", "65536"}},
            {{"chunk", "65536"}, {"buffers", "4"}},
            {{"chunk", "262144"}, {"buffers", "3"}}};
}

TEST_F(RankSession, BringsEveryByteBetweenAllKindsOfMemory) {
    const std::set<std::string> kinds{"pageable", "pinned", "device", "write-combined"};
    int measured = 0;
    for (const std::string& source : kinds) {
        for (const std::string& destination : kinds) {
            for (const std::string executor : {"mpi", "mpi-staged"}) {
                const Transfer tried =
                    transfer(source.c_str(), 1, destination.c_str(), 0, executor.c_str(), 65543);
                SCOPED_TRACE(tried.text());
                if (unsupported_reason(tried, machine_of(2))) {
                    EXPECT_EQ(executor, "mpi-staged");
                    EXPECT_FALSE(source == "device" || destination == "device");
                    continue;
                }
                ThreadWorld world(2);
                const std::vector<Outcome> found = measure(world, request({tried}));
                EXPECT_FALSE(found[0].samples.empty());
                EXPECT_TRUE(found[1].samples.empty());
                ++measured;
            }
        }
    }
    EXPECT_EQ(measured, 16 + 7);
}

TEST_F(RankSession, BringsEveryByteOfAwkwardSizesWithEachSetting) {
    for (const std::size_t bytes : {1, 65521, 262145}) {
        for (const std::string executor : {"mpi", "mpi-staged"}) {
            for (const Settings& settings : settings_of(executor)) {
                const Transfer tried =
                    transfer("device", 0, "device", 1, executor.c_str(), bytes, settings);
                SCOPED_TRACE(tried.text());
                ThreadWorld world(2);
                EXPECT_FALSE(measure(world, request({tried}))[0].samples.empty());
            }
        }
    }
}

TEST_F(RankSession, TimesEachTransferOfSeveralPairs) {
    ThreadWorld world(5);  // one rank is in no transfer
    const std::vector<Outcome> found =
        measure(world, request({transfer("pageable", 1, "pageable", 2, "mpi", 4096),
                                transfer("pageable", 4, "pageable", 3, "mpi", 8192),
                                transfer("pageable", 4, "pageable", 1, "mpi", 64)}));
    ASSERT_FALSE(found[1].samples.empty());
    for (const Sample& sample : found[1].samples) {
        ASSERT_EQ(sample.transfers.size(), 3);
        for (const double seconds : sample.transfers) EXPECT_GT(seconds, 0);
        EXPECT_GE(sample.skew, 0);
    }
    EXPECT_EQ(found[1].buffers.size(), 2);
    EXPECT_EQ(found[4].buffers.size(), 2);
}

TEST_F(RankSession, ATimeIsThatOfOneCrossing) {
    constexpr std::chrono::microseconds kDelay{2000};
    for (const char* test : {"latency", "bw"}) {
        SCOPED_TRACE(test);
        ThreadWorld world(2, {.delay = kDelay});
        const Settings settings{{"test", test}};
        const std::vector<Outcome> found =
            measure(world, request({transfer("pageable", 0, "pageable", 1, "mpi", 64, settings)}));
        for (const Sample& sample : found[0].samples) {
            EXPECT_GE(sample.span, 2e-3);  // each message was delayed
        }
    }
}

TEST_F(RankSession, WrongBytesAreFoundInEveryRank) {
    for (const int rank : {0, 1}) {  // the way there and the way back
        SCOPED_TRACE(rank);
        ThreadWorld world(2, {.flips = test::MessageOfRank{rank, 1}, .counted_bytes = 1000});
        const auto [outcomes, said] = test::measure_in_ranks(
            world, machine_of(2), request({transfer("pinned", 0, "device", 1, "mpi", 1000)}),
            [](int) { return SessionOptions{}.memory_bytes; });
        EXPECT_FALSE(said[0].empty());
        EXPECT_FALSE(said[1].empty());
        EXPECT_NE((said[0] + said[1]).find("1 of 1000 bytes are wrong at the"), std::string::npos)
            << said[0] << said[1];
    }
}

TEST_F(RankSession, WhatOneRankCannotDoEndsInAll) {
    ThreadWorld world(2);
    // Only the second has so little memory.
    const auto memory = [](int rank) { return rank == 0 ? std::size_t{1} << 30 : 4096; };
    const auto [outcomes, said] = test::measure_in_ranks(
        world, machine_of(2), request({transfer("pageable", 0, "pageable", 1, "mpi", 1 << 20)}),
        memory);
    EXPECT_EQ(said[0], "rank:1");
    EXPECT_NE(said[1].find("raise --memory"), std::string::npos) << said[1];
}

TEST_F(RankSession, AMessageThatFailsIsAnErrorOfAllRanks) {
    for (std::uint64_t message = 1; message < 30; message += 4) {
        ThreadWorld world(2, {.fails = test::MessageOfRank{1, message}});
        EXPECT_THROW(measure(world, request({transfer("device", 0, "pinned", 1, "mpi-staged",
                                                      300000, {{"chunk", "65536"}})})),
                     ranks::MessengerError);
    }
}

TEST_F(RankSession, SaysWhyAWorkloadIsNotSupported) {
    const Machine machine = machine_of(2);
    const auto reason = [&](const Transfer& tried) {
        return unsupported_reason(tried, machine).value_or("");
    };
    EXPECT_EQ(reason(transfer("pageable", 0, "pageable", 0, "mpi", 1)),
              "both ends are of one rank");
    EXPECT_EQ(reason(transfer("pageable", 0, "pageable", 7, "mpi", 1)),
              "there is no rank:7 in this launch");
    EXPECT_EQ(reason(transfer("pageable", 0, "pageable", 1, "cpu", 1)),
              "cpu moves bytes within one process");
    EXPECT_EQ(reason(transfer("pageable", 0, "pageable", 1, "mpi-staged", 1)),
              "neither end is on a GPU: nothing is staged");
    Transfer other = transfer("device", 0, "device", 1, "mpi", 1);
    other.path.destination.variant = {{"gpu", "5"}};
    EXPECT_EQ(reason(other), "rank:1 does not have gpu:5");
    other.path.destination.variant = {{"gpu", std::to_string(machine.ranks[1].gpu)}};
    EXPECT_EQ(reason(other), "");
    Transfer within = transfer("pageable", 0, "pageable", 1, "mpi", 1);
    within.path.destination.place =
        machine.numa.empty() ? Place{} : Place{Place::Kind::numa, 0, {}};
    EXPECT_EQ(reason(within), "mpi moves bytes between ranks");
    const std::size_t large = std::size_t{1} << 31;
    const std::string too_large = "MPI counts in int, so one message has less than 2 GiB";
    EXPECT_EQ(reason(transfer("device", 0, "device", 1, "mpi", large)), too_large);
    EXPECT_EQ(reason(transfer("device", 0, "device", 1, "mpi-staged", large)), too_large);
    EXPECT_EQ(reason(transfer("device", 0, "device", 1, "mpi-staged", large, {{"chunk", "65536"}})),
              "");
}

TEST_F(RankSession, TheLibraryMayNotSendAKindOfMemoryAsItIs) {
    Machine machine = machine_of(2);
    machine.ranks[1].unsent = {"device"};
    const auto reason = [&](const char* source, const char* destination, const char* executor) {
        return unsupported_reason(transfer(source, 0, destination, 1, executor, 64), machine)
            .value_or("");
    };
    EXPECT_EQ(reason("pinned", "device", "mpi"), "the MPI library does not send device memory");
    EXPECT_EQ(reason("device", "pinned", "mpi"), "");
    EXPECT_EQ(reason("pinned", "device", "mpi-staged"), "");
}

TEST_F(RankSession, MeasuresHowWellRanksStartTogether) {
    ThreadWorld world(4);  // one rank is not in it
    const Machine machine = machine_of(4);
    const OperationCall skew{"barrier-skew", Place::parse("rank:1-3"), {}};
    Request tried = request({});
    tried.operation = skew;
    std::vector<Outcome> found(4);
    world.run([&](Messenger& messenger) {
        Session session(machine, {.messenger = &messenger});
        found[messenger.rank()] = session.measure(tried, nullptr);
    });
    ASSERT_FALSE(found[1].samples.empty());
    for (const Sample& sample : found[1].samples) {
        EXPECT_GT(sample.span, 0);
        EXPECT_EQ(sample.repetitions, 1u);
        EXPECT_EQ(sample.flags, 0u);
    }
    for (const int rank : {0, 2, 3}) EXPECT_TRUE(found[rank].samples.empty());
    const auto reason = [&](const char* place) {
        const OperationCall call{"barrier-skew", Place::parse(place), {}};
        return unsupported_reason(call, machine).value_or("");
    };
    EXPECT_EQ(reason("rank:1"), "a barrier has several ranks, as rank:0-1");
    EXPECT_EQ(reason("rank:2-4"), "there is no rank:4 in this launch");
    EXPECT_EQ(reason("numa:0"), "barrier-skew is not performed at numa:0");
    Session alone(machine, {});
    EXPECT_THROW((void)alone.measure(tried, nullptr), NotSupported);
}

TEST_F(RankSession, NeedsAMessengerAndWarmCaches) {
    Session session(machine_of(2), {});
    Request tried = request({transfer("pageable", 0, "pageable", 1, "mpi", 1)});
    EXPECT_THROW((void)session.measure(tried, nullptr), NotSupported);
}

}  // namespace
}  // namespace waywiser
