#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "case_stride.hpp"
#include "measure/session_test.hpp"
#include "nccl/communicators.hpp"
#include "nccl/fake_nccl.hpp"
#include "nccl/library.hpp"
#include "waywiser/executor.hpp"

namespace waywiser {
namespace {

const std::vector<std::string> kNcclCollectives{"allreduce", "allgather", "reduce-scatter",
                                                "broadcast", "alltoall"};
// Three chunks of the fake NCCL. Races depend on the calls, not on their bytes (many_sizes()).
const std::size_t kMany = test::many_sizes() ? 192 << 10 : 32 << 10;
const std::vector<std::size_t> kSizes = test::many_sizes()
                                            ? std::vector<std::size_t>{1, 7, 10007, 256 << 10}
                                            : std::vector<std::size_t>{1, 10007};

class NcclTest : public SessionTest {
protected:
    NcclTest() {
        fake::configure("devices=3");
        test::configure_fake_nccl("");
    }
    ~NcclTest() override {
        session.reset();
        test::configure_fake_nccl("");
        nccl::free_communicators();
    }

    static Request among(std::size_t bytes, const Settings& parameters = {},
                         const char* gpus = "gpu:0-2") {
        return request("device", gpus, "device", gpus, "nccl", bytes, parameters);
    }
    static std::string reason(const Request& requested) {
        return unsupported_reason(requested.transfers.front(), test::this_machine()).value_or("");
    }
};

TEST_F(NcclTest, MovesTheBytesOfEveryCollective) {
    for (const std::string& collective : kNcclCollectives) {
        for (const std::size_t bytes : kSizes) {
            SCOPED_TRACE(collective + " of " + std::to_string(bytes));
            const Outcome outcome = measure(among(bytes, {{"collective", collective}}));
            expect_valid(outcome, 1);
            EXPECT_EQ(outcome.mode, TimingMode::device);
            for (const Sample& sample : outcome.samples) {
                ASSERT_EQ(sample.lanes.size(), 1u);
                ASSERT_EQ(sample.lanes.front().size(), 3u);
                EXPECT_EQ(sample.transfers.front(), std::ranges::max(sample.lanes.front()));
            }
        }
    }
}

TEST_F(NcclTest, MakesCallsInARow) {
    EXPECT_GE(measure(among(8)).samples.front().repetitions, 20u);
    const Machine machine = test::this_machine();
    const auto window = [&](std::size_t bytes) {
        const Transfer transfer = among(bytes).transfers.front();
        return test::Caller(transfer, machine).prepare()->window();
    };
    EXPECT_EQ(window(1), 20u);
    EXPECT_EQ(window(64 * kMiB), 4u);
    EXPECT_EQ(window(1024 * kMiB), 1u);
}

TEST_F(NcclTest, SumsIntegersToo) {
    for (const char* collective : {"allreduce", "reduce-scatter"}) {
        expect_valid(measure(among(10007, {{"collective", collective}, {"type", "int32"}})), 1);
    }
}

TEST_F(NcclTest, CopiesBetweenTwoGpus) {
    for (const std::size_t bytes : kSizes) {
        const Outcome outcome =
            measure(request("device", "gpu:2", "device", "gpu:0", "nccl", bytes));
        expect_valid(outcome, 1);
        EXPECT_EQ(outcome.samples.front().lanes.front().size(), 2u);
    }
}

TEST_F(NcclTest, MeasuresSeveralTogether) {
    Request both = among(kMany);
    both.transfers.push_back(
        request("device", "gpu:1", "device", "gpu:0", "nccl", kMany).transfers.front());
    both.transfers.push_back(to_gpu(kMany).transfers.front());
    const Outcome outcome = measure(both);
    expect_valid(outcome, 3);
    EXPECT_EQ(outcome.mode, TimingMode::host);
    for (const Sample& sample : outcome.samples) {
        ASSERT_EQ(sample.alone.size(), 3u);
        EXPECT_GT(std::ranges::min(sample.alone), 0);
        ASSERT_EQ(sample.lanes.size(), 3u);
        EXPECT_EQ(sample.lanes[0].size(), 3u);
        EXPECT_EQ(sample.lanes[1].size(), 2u);
        EXPECT_EQ(sample.lanes[2], std::vector{sample.transfers[2]});
    }
}

// Each thread starts its own: of two collectives of the same GPUs no GPU begins another one first.
TEST_F(NcclTest, MeasuresCollectivesTogetherInAnyOrder) {
    constexpr std::size_t kBytes = std::size_t{2} << 10;
    const std::vector<Transfer> all{
        among(kBytes).transfers.front(),
        among(kBytes, {{"collective", "allgather"}}).transfers.front(),
        from_gpu(16 * kBytes).transfers.front(),
        request("device", "gpu:0", "device", "gpu:0", "matrix-product", kBytes).transfers.front()};
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {  // either collective first
        Request set = among(8);
        set.transfers = all;
        std::ranges::rotate(set.transfers,
                            set.transfers.begin() + static_cast<std::ptrdiff_t>(first));
        SCOPED_TRACE(set.transfers.front().text());
        const Outcome outcome = measure(set);
        expect_valid(outcome, 4);
    }
}

TEST_F(NcclTest, FindsWhatACopyTakesFromACollective) {
    if (!test::many_sizes())
        GTEST_SKIP() << "the thread sanitizer takes longer than the collective";
    test::configure_fake_nccl("rate=0.2;busy=20");
    Request set = among(64 << 10);
    set.transfers.push_back(from_gpu(16 * kMiB).transfers.front());
    // On a busy machine all samples alone may be slow ones: it is measured again.
    constexpr int kMeasurements = 10;
    double most = 0;
    double alone = std::numeric_limits<double>::infinity();
    for (int number = 0; number < kMeasurements && most <= 2 * alone; ++number) {
        for (const Sample& sample : measure(set).samples) {
            most = std::max(most, sample.transfers[0]);
            alone = std::min(alone, sample.alone[0]);
        }
    }
    EXPECT_GT(most, 2 * alone);
}

TEST_F(NcclTest, ChecksTheBytesOfEachOfSeveral) {
    Request set = from_gpu(kMany);
    set.transfers.push_back(among(10007).transfers.front());
    test::configure_fake_nccl("flip=60");  // the last of 20 calls of three ranks
    try {
        measure(set);
        ADD_FAILURE() << "the wrong byte was not found";
    } catch (const WrongBytes& error) {
        EXPECT_NE(std::string(error.what()).find("by nccl"), std::string::npos) << error.what();
    }
}

TEST_F(NcclTest, RepeatsWhatIsBesideACollective) {
    Request set = among(kMiB);
    set.transfers.push_back(to_gpu(kMiB).transfers.front());
    set.cache = Cache::flushed;
    EXPECT_THROW(measure(set), NotSupported);
}

TEST_F(NcclTest, FindsAWrongByteOfAnyGpu) {
    for (const std::string& collective : kNcclCollectives) {
        for (const char* flip : {"flip=1", "flip=2", "flip=3"}) {
            SCOPED_TRACE(collective + " " + flip);
            test::configure_fake_nccl(flip);
            const std::string gpu = std::to_string(flip[5] - '1');
            try {
                measure(among(10007, {{"collective", collective}}));
                ADD_FAILURE() << "the wrong byte was not found";
            } catch (const WrongBytes& error) {
                EXPECT_NE(
                    std::string(error.what()).find("1 of 10007 bytes are wrong on gpu:" + gpu),
                    std::string::npos)
                    << error.what();
            }
        }
    }
}

// A size of nothing cannot be measured, but it can be moved.
TEST_F(NcclTest, MovesNothing) {
    const Machine machine = test::this_machine();
    for (const std::string& collective : kNcclCollectives) {
        const Transfer transfer = among(0, {{"collective", collective}}).transfers.front();
        const test::Caller caller(transfer, machine);
        const auto execution = caller.prepare();
        std::vector<std::byte> byte(3);
        std::byte* const each[] = {byte.data(), byte.data() + 1, byte.data() + 2};
        const View view{.bytes = 0, .memory = &transfer.path.source, .each = each};
        caller.run(*execution, view, view);
        EXPECT_EQ(byte, std::vector<std::byte>(3));
    }
}

// The others wait for the rank that does not come.
TEST_F(NcclTest, HangsWithoutOneOfTheRanks) {
    const Machine machine = test::this_machine();
    const Transfer transfer = among(8).transfers.front();
    const test::Caller caller(transfer, machine);
    test::configure_fake_nccl("miss=2");
    std::vector<std::byte> from(24), to(24);
    std::byte* const sources[] = {from.data(), from.data() + 8, from.data() + 16};
    std::byte* const destinations[] = {to.data(), to.data() + 8, to.data() + 16};
    const View source{.bytes = 8, .memory = &transfer.path.source, .each = sources};
    const View destination{.bytes = 8, .memory = &transfer.path.source, .each = destinations};
    {
        const auto execution = caller.prepare();
        execution->start(source, destination);
        EXPECT_TRUE(caller.lanes()[1]->done());
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_FALSE(caller.lanes()[0]->done());
        EXPECT_FALSE(caller.lanes()[2]->done());
        execution->start(source, destination);  // the missing rank is one behind
        caller.lanes()[1]->synchronize();
        EXPECT_FALSE(caller.lanes()[0]->done());
        EXPECT_FALSE(caller.lanes()[2]->done());
    }
    const auto communicators = nccl::take_communicators({0, 1, 2});
    test::end_fake_nccl(*communicators);
    for (const gpu::Stream* lane : caller.lanes()) lane->synchronize();
}

TEST_F(NcclTest, KeepsCommunicatorsOfTheSameGpus) {
    auto first = nccl::take_communicators({0, 1});
    const auto second = nccl::take_communicators({0, 1});
    EXPECT_NE(first, second) << "nobody else uses them";
    const nccl::Communicators* known = first.get();
    first.reset();
    EXPECT_EQ(nccl::take_communicators({0, 1}).get(), known);
    EXPECT_EQ(nccl::take_communicators({1, 2})->gpus(), (std::vector{1, 2}));
}

TEST_F(NcclTest, SaysWhatItDoesNotDo) {
    EXPECT_EQ(reason(request("device", "gpu:0", "device", "gpu:0", "nccl", 8)),
              "NCCL moves bytes between GPUs");
    EXPECT_EQ(reason(request("pinned", node.c_str(), "device", "gpu:0", "nccl", 8)),
              "NCCL moves bytes between GPUs");
    EXPECT_EQ(reason(request("device", "gpu:0-1", "device", "gpu:1-2", "nccl", 8)),
              "a collective has the same GPUs at both ends");
    EXPECT_EQ(reason(request("device", "gpu:0", "device", "gpu:1-2", "nccl", 8)),
              "a collective has the same GPUs at both ends");
    EXPECT_EQ(reason(among(8, {}, "gpu:0-7")), "this machine has no gpu:3");
    EXPECT_EQ(reason(request("device", "gpu:0-1", "device", "gpu:0-1", "copy-engine", 8)),
              "copy-engine moves bytes between two memories, not among several");
}

TEST_F(NcclTest, IsNotSupportedWithoutTheLibrary) {
    const std::string known = nccl::file();
    nccl::use_file("");
    EXPECT_NE(reason(among(8)).find("install the package nvidia-nccl-cu13"), std::string::npos);
    nccl::use_file("/nowhere/libnccl.so.2");
    EXPECT_EQ(reason(among(8)),
              "there is no NCCL at /nowhere/libnccl.so.2: name libnccl.so.2 with --nccl");
    nccl::use_file(known);
    EXPECT_EQ(reason(among(8)), "");
    EXPECT_EQ(nccl::version(), "2.27.3");
}

}  // namespace
}  // namespace waywiser
