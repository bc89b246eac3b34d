// Messages and collectives of the fake NCCL between ranks that are threads, as sessions measure
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "case_stride.hpp"
#include "measure/rank_measurements.hpp"
#include "measure/session_test.hpp"
#include "nccl/fake_nccl.hpp"
#include "ranks/nccl_messenger.hpp"
#include "ranks/nccl_ranks.hpp"
#include "ranks/rank_places.hpp"
#include "ranks/thread_messenger.hpp"

namespace waywiser {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kPatience = 60;
const std::vector<std::string> kCollectives{"allreduce", "allgather", "reduce-scatter", "broadcast",
                                            "alltoall"};

class NcclBetweenRanks : public test::OnFake {
protected:
    NcclBetweenRanks() {
        fake::configure("devices=5");  // a GPU waits for all its work when it frees memory
        test::configure_fake_nccl("");
    }
    ~NcclBetweenRanks() override { test::configure_fake_nccl(""); }

    static Machine machine_of(int ranks, const char* messages = "nccl") {
        Machine machine = test::with_ranks(ranks, [](int rank) { return rank % 5; });
        for (RankPlace& rank : machine.ranks) rank.messages = messages;
        return machine;
    }
    static Transfer message(int from, int to, std::size_t bytes, const Settings& settings = {}) {
        return {{{"device", {Place::Kind::rank, from, {}}, {}},
                 {"device", {Place::Kind::rank, to, {}}, {}},
                 "nccl"},
                bytes,
                settings};
    }
    static Transfer collective(const char* ranks, std::size_t bytes, const Settings& settings) {
        const Memory memory{"device", Place::parse(ranks), {}};
        return {{memory, memory, "nccl"}, bytes, settings};
    }
    using Found = test::RankMeasurements;
    static Found measure(int size, std::vector<Transfer> transfers) {
        StopRule few = kQuick;
        few.minimum = few.slow_minimum = 2;
        few.maximum = 3;
        const Request request{.transfers = std::move(transfers), .operation = {}, .rule = few};
        const Machine machine = machine_of(size);
        Found found{std::vector<Outcome>(static_cast<std::size_t>(size)),
                    std::vector<std::string>(static_cast<std::size_t>(size))};
        test::run_nccl_ranks(size, 5, kPatience, [&](const auto& connection) {
            ranks::NcclMessenger messenger(connection);
            Session session(machine, {.messenger = &messenger});
            test::measure_as_rank(found, messenger, session, request);
        });
        return found;
    }
    static std::string reason(const Transfer& transfer, const Machine& machine) {
        return unsupported_reason(transfer, machine).value_or("");
    }
};

TEST_F(NcclBetweenRanks, BringsEveryByteOfAMessage) {
    for (const std::size_t bytes : {1, 65543, 300000}) {
        for (const char* test : {"latency", "bw"}) {
            SCOPED_TRACE(std::string(test) + " of " + std::to_string(bytes));
            const Found found = measure(2, {message(1, 0, bytes, {{"test", test}})});
            EXPECT_THAT(found.said, ElementsAre("", ""));
            EXPECT_FALSE(found.outcomes[0].samples.empty());
            EXPECT_TRUE(found.outcomes[1].samples.empty());
            EXPECT_EQ(found.outcomes[0].mode, TimingMode::host);
        }
    }
}

TEST_F(NcclBetweenRanks, TimesEachRailOfAPair) {
    test::configure_fake_nccl("rate=0.5");
    const Found found = measure(
        5, {message(0, 2, 1 << 13, {{"test", "bw"}}), message(1, 3, 1 << 21, {{"test", "bw"}})});
    double small = std::numeric_limits<double>::infinity();
    for (const Sample& sample : found.outcomes[0].samples) {
        ASSERT_EQ(sample.transfers.size(), 2);
        small = std::min(small, sample.transfers[0]);
        EXPECT_GE(sample.transfers[1], (1 << 21) / 0.5e9);  // 4.2 ms
    }
    EXPECT_LT(small, (1 << 21) / 0.5e9);  // 16 us, and what a busy machine adds
    EXPECT_TRUE(found.outcomes[4].samples.empty());
}

// The clock is the sender's: what the receiver still takes must be in its time.
TEST_F(NcclBetweenRanks, WaitsForASlowReceiver) {
    constexpr double kSlow = (1 << 20) / 0.1e9;
    double quick = std::numeric_limits<double>::infinity();
    // On a busy machine some take longer.
    for (int tries = 0; tries < 20 && quick >= kSlow; ++tries) {
        const Found found = measure(2, {message(0, 1, 1 << 20, {{"test", "bw"}})});
        for (const Sample& sample : found.outcomes[0].samples) {
            quick = std::min(quick, sample.transfers[0]);
        }
    }
    EXPECT_LT(quick, kSlow);
    test::configure_fake_nccl("receive=0.1;least=4096");
    // The sender may lose its CPU before its time begins, and the receiver begins without it.
    double slow = 0;
    for (int tries = 0; tries < 20 && slow < kSlow; ++tries) {
        const Found found = measure(2, {message(0, 1, 1 << 20, {{"test", "bw"}})});
        slow = std::max(slow, found.outcomes[0].samples[0].transfers[0]);
    }
    EXPECT_GE(slow, kSlow);
}

TEST_F(NcclBetweenRanks, MovesTheBytesOfEveryCollective) {
    for (const std::string& name : kCollectives) {
        for (const std::size_t bytes : test::few_of(std::vector{10007, 1, 7})) {
            SCOPED_TRACE(name + " of " + std::to_string(bytes));
            const Found found = measure(3, {collective("rank:0-2", bytes, {{"collective", name}})});
            EXPECT_THAT(found.said, ElementsAre("", "", ""));
            for (const Sample& sample : found.outcomes[0].samples) {
                ASSERT_EQ(sample.lanes.front().size(), 3);
            }
        }
    }
    const Found whole = measure(
        2, {collective("rank:0-1", 4096, {{"collective", "allreduce"}, {"type", "int32"}})});
    EXPECT_THAT(whole.said, ElementsAre("", ""));
}

TEST_F(NcclBetweenRanks, FindsAWrongByte) {
    for (const std::string& name : kCollectives) {
        SCOPED_TRACE(name);
        test::configure_fake_nccl("flip=2;least=3000");
        const Found found = measure(3, {collective("rank:0-2", 10007, {{"collective", name}})});
        int wrong = 0;
        for (const std::string& said : found.said) {
            wrong += said.find("1 of ") == 0 && said.find("bytes are wrong at") != said.npos;
        }
        EXPECT_EQ(wrong, 1) << found.said[0] << "; " << found.said[1] << "; " << found.said[2];
    }
}

TEST_F(NcclBetweenRanks, FindsAWrongByteOfAMessage) {
    test::configure_fake_nccl("spoil=1;least=3000");
    const Found found = measure(2, {message(0, 1, 4096, {{"test", "bw"}})});
    EXPECT_EQ(found.said[0], "rank:1");
    EXPECT_THAT(found.said[1], HasSubstr("1 of 4096 bytes are wrong at the destination"));
}

TEST_F(NcclBetweenRanks, AreOneTransferOfARank) {
    const Found found = measure(2, {message(0, 1, 4096), message(1, 0, 4096)});
    for (const std::string& said : found.said) EXPECT_THAT(said, HasSubstr("one transfer at a"));
}

TEST_F(NcclBetweenRanks, CollectivesAreOfAllRanks) {
    const Found found = measure(3, {collective("rank:0-1", 4096, {{"collective", "allreduce"}})});
    EXPECT_THAT(found.said[0], HasSubstr("all ranks that are connected"));
    EXPECT_EQ(found.said[2], "");
}

TEST_F(NcclBetweenRanks, SaysWhatItDoesNotDo) {
    const Machine machine = machine_of(2);
    EXPECT_EQ(reason(message(0, 1, 8), machine), "");
    EXPECT_THAT(reason(message(0, 1, 8), machine_of(2, "mpi")), HasSubstr("within one process"));
    Transfer pinned = message(0, 1, 8);
    pinned.path.source.kind = "pinned";
    EXPECT_EQ(reason(pinned, machine), "NCCL moves bytes between GPUs");
    Transfer by_mpi = message(0, 1, 8);
    by_mpi.path.executor = "mpi";
    EXPECT_EQ(reason(by_mpi, machine), "these ranks have no MPI: write nccl");
    const Machine large = machine_of(300);
    const Settings sum{{"collective", "allreduce"}};
    EXPECT_EQ(reason(collective("rank:0-255", 8, sum), large), "");
    EXPECT_THAT(reason(collective("rank:0-256", 8, sum), large), HasSubstr("write type=int32"));
    EXPECT_EQ(reason(collective("rank:0-256", 8, {{"collective", "allreduce"}, {"type", "int32"}}),
                     large),
              "");
    EXPECT_EQ(reason(collective("rank:0-256", 8, {{"collective", "alltoall"}}), large), "");
}

TEST_F(NcclBetweenRanks, NeedsAMessengerOfNccl) {
    const Machine machine = machine_of(2);
    test::ThreadWorld world(2);
    world.run([&](ranks::Messenger& messenger) {
        Session session(machine, {.messenger = &messenger});
        const Request request{.transfers = {message(0, 1, 8)}, .operation = {}, .rule = kQuick};
        try {
            session.measure(request, nullptr);
            ADD_FAILURE() << "it measured";
        } catch (const NotSupported& error) {
            EXPECT_THAT(error.what(), HasSubstr("not those of NCCL"));
        }
    });
}

}  // namespace
}  // namespace waywiser
