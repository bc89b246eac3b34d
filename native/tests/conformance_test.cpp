// What every executor promises, asked of each on every path between all kinds of memory: on the
// fake GPU, and on the real one.
#include "conformance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <future>
#include <optional>
#include <set>

namespace waywiser::test {
namespace {

constexpr std::size_t kLargest = (std::size_t{1} << 20) + 13;
constexpr std::size_t kMiB = std::size_t{1} << 20;

// About machine words, cache lines, pages, and the 64 KiB and 1 MiB at which runtimes change ways.
constexpr std::size_t kSizes[] = {1,    3,    7,    8,     63,    64,    65,      511,
                                  4095, 4096, 4097, 65535, 65536, 65537, kLargest};
constexpr std::pair<std::size_t, std::size_t> kOffsets[] = {{0, 0},  {1, 0},   {0, 1},
                                                            {3, 61}, {64, 64}, {4095, 8}};

const Machine& machine() {
    static const Machine known = this_machine();
    return known;
}

class Conformance : public ::testing::TestWithParam<Path> {
protected:
    // Those of the path that can be run here.
    static std::vector<Transfer> runnable(std::size_t bytes) {
        std::vector<Transfer> kept;
        for (Transfer& transfer : variations(GetParam(), machine())) {
            transfer.bytes = bytes;
            if (!refusal(transfer, machine())) kept.push_back(std::move(transfer));
        }
        return kept;
    }
};

bool one_line(const std::string& text) {
    return !text.empty() && text.find('\n') == std::string::npos;
}

TEST_P(Conformance, RefusesWithAReasonOrSaysHow) {
    for (Transfer& transfer : variations(GetParam(), machine())) {
        SCOPED_TRACE(transfer.text());
        transfer.bytes = 4096;
        const Executor& executor = *Executors::instance().find(transfer.path.executor);
        if (const auto reason = refusal(transfer, machine())) {
            EXPECT_TRUE(one_line(*reason)) << *reason;
            continue;
        }
        std::set<std::string> names;
        for (const Parameter& parameter : executor.parameters(transfer, machine())) {
            EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name << " twice";
            EXPECT_TRUE(one_line(parameter.description)) << parameter.name;
            ASSERT_FALSE(parameter.choices.empty()) << parameter.name;
        }
        for (const int lane : executor.lanes(transfer, machine())) {
            EXPECT_NE(machine().gpu(lane), nullptr);
        }
        if (executor.timing(transfer, machine()) == TimingMode::device) {
            EXPECT_FALSE(executor.lanes(transfer, machine()).empty())
                << "nobody to record the events";
        }
        const int node = executor.submit_node(transfer, machine());
        EXPECT_TRUE(node == -1 || machine().node(node) != nullptr) << "node " << node;
    }
}

TEST_P(Conformance, RefusesSettingsItDoesNotHave) {
    for (const char* name : {"no such parameter", ""}) {
        const auto reason = refusal({GetParam(), 4096, {{name, "1"}}}, machine());
        ASSERT_TRUE(reason.has_value());
        EXPECT_TRUE(one_line(*reason)) << *reason;
    }
}

TEST_P(Conformance, BringsTheRightBytesAndNoOthers) {
    for (std::size_t bytes : kSizes) {
        for (const Transfer& transfer : runnable(bytes)) {
            SCOPED_TRACE(transfer.text());
            const GuardedBuffer source(transfer.path.source, bytes, machine());
            const GuardedBuffer destination(transfer.path.destination, bytes, machine());
            const Caller caller(transfer, machine());
            const auto execution = caller.prepare();
            unsigned seed = 1;
            for (const auto& [from, to] : kOffsets) {
                ASSERT_EQ(
                    copy_once(caller, *execution, source, from, destination, to, bytes, seed++),
                    "");
            }
        }
    }
}

// Work enqueued several times before anybody waits, as batches of small transfers are.
TEST_P(Conformance, StartsRepeatedlyWithoutWaiting) {
    constexpr std::size_t kPieces = 16;
    constexpr std::size_t kPiece = 4099;
    for (const Transfer& transfer : runnable(kPiece)) {
        SCOPED_TRACE(transfer.text());
        const GuardedBuffer source(transfer.path.source, kPieces * kPiece, machine());
        const GuardedBuffer destination(transfer.path.destination, kPieces * kPiece, machine());
        const Caller caller(transfer, machine());
        const auto execution = caller.prepare();
        const auto sent = sequence(kPieces * kPiece + 2 * GuardedBuffer::kGuard, 5);
        source.write(0, sent);
        destination.write(0, std::vector<std::byte>(sent.size()));
        const bool device = caller.timing() == TimingMode::device;
        for (std::size_t piece = 0; piece < kPieces; ++piece) {
            const std::size_t at = piece * kPiece;
            View from = source.view(0, kPiece);
            View to = destination.view(0, kPiece);
            from.data += at;
            to.data += at;
            execution->start(from, to);
            if (!device) execution->finish();
        }
        if (device) caller.lanes().front()->synchronize();
        const auto arrived = destination.read(0, kPieces * kPiece);
        constexpr auto kGuard = static_cast<std::ptrdiff_t>(GuardedBuffer::kGuard);
        EXPECT_TRUE(
            std::equal(sent.begin() + kGuard, sent.end() - kGuard, arrived.begin() + kGuard));
    }
}

// What claims to be timed by the device must not hold its host while the gate is closed.
TEST_P(Conformance, DeviceTimedStartsReturnBehindAClosedGate) {
    constexpr auto kPatience = std::chrono::seconds(20);
    for (const std::size_t bytes : {std::size_t{8}, kMiB, 64 * kMiB}) {
        for (const Transfer& transfer : runnable(bytes)) {
            const Caller caller(transfer, machine());
            if (caller.timing() != TimingMode::device) continue;
            SCOPED_TRACE(transfer.text());
            const GuardedBuffer source(transfer.path.source, bytes, machine());
            const GuardedBuffer destination(transfer.path.destination, bytes, machine());
            const auto execution = caller.prepare();
            const View from = source.view(0, bytes);
            const View to = destination.view(0, bytes);
            caller.run(*execution, from, to);  // a first execution is never gated
            gpu::Gate gate;
            for (gpu::Stream* lane : caller.lanes()) gate.close(*lane);
            auto started = std::async(std::launch::async, [&] { execution->start(from, to); });
            const bool returned = started.wait_for(kPatience) == std::future_status::ready;
            const bool waits = !caller.lanes().front()->done();
            gate.open();
            started.get();
            caller.lanes().front()->synchronize();
            EXPECT_TRUE(returned) << "start() blocks behind a closed gate";
            EXPECT_TRUE(waits) << "the timed lane did not wait for the gate";
        }
    }
}

TEST_P(Conformance, LeavesNoMemoryBehind) {
    constexpr std::size_t kBytes = 4 * kMiB;
    constexpr std::size_t kSlack = 3 * kMiB;  // what a runtime keeps for itself, in steps of 2 MiB
    const auto work = [&] {
        for (const Transfer& transfer : runnable(kBytes)) {
            const GuardedBuffer source(transfer.path.source, kBytes, machine());
            const GuardedBuffer destination(transfer.path.destination, kBytes, machine());
            const Caller caller(transfer, machine());
            const auto execution = caller.prepare();
            caller.run(*execution, source.view(0, kBytes), destination.view(0, kBytes));
        }
    };
    const auto free = [] {
        std::vector<std::size_t> bytes;
        for (const GpuPlace& gpu : machine().gpus) bytes.push_back(gpu::free_bytes(gpu.index));
        return bytes;
    };
    work();  // the first time a runtime may load code and set up its own buffers
    const auto before = free();
    work();
    const auto after = free();
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_GE(after[i] + kSlack, before[i]);
}

std::string test_name(const ::testing::TestParamInfo<Path>& info) {
    std::string name = info.param.executor + "_" + info.param.source.text() + "_to_" +
                       info.param.destination.text();
    std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Every, Conformance, ::testing::ValuesIn(paths(machine())), test_name);

TEST(Registries, HoldSomethingAndDescribeIt) {
    const auto described = [](const Info& info) {
        SCOPED_TRACE(info.name);
        EXPECT_TRUE(one_line(info.name));
        EXPECT_TRUE(one_line(info.description));
        EXPECT_TRUE(one_line(info.source));
        for (const Parameter& parameter : info.parameters) {
            EXPECT_TRUE(one_line(parameter.description)) << parameter.name;
            EXPECT_FALSE(parameter.choices.empty()) << parameter.name;
        }
    };
    EXPECT_FALSE(Executors::instance().entries().empty());
    EXPECT_FALSE(Memories::instance().entries().empty());
    for (const auto& executor : Executors::instance().entries()) described(executor->info());
    for (const auto& kind : Memories::instance().entries()) described(kind->info());
}

}  // namespace
}  // namespace waywiser::test
