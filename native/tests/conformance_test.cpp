// The contract of every executor, tested on every path between all kinds of memory: on the fake
// GPU, and on a real one.
#include "conformance.hpp"
#include "case_stride.hpp"
#include "units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <future>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace waywiser::test {
namespace {

constexpr std::size_t kLargest = (std::size_t{1} << 20) + 13;

// Around machine words, cache lines, pages, and the 64 KiB and 1 MiB at which runtimes change
// methods.
constexpr std::size_t kSizes[] = {1,    3,    7,    8,     63,    64,    65,      511,
                                  4095, 4096, 4097, 65535, 65536, 65537, kLargest};
// A file is accessed in blocks: fewer bytes may be rejected.
constexpr std::size_t kBlock = 4096;

// Enough for variants other than the path's default. Races depend on neither the number nor the
// place of bytes (many_sizes()).
const std::vector<std::size_t> kFewSizes = many_sizes()
                                               ? std::vector<std::size_t>{1, 65, 4097, 65537}
                                               : std::vector<std::size_t>{65, 65537};
const std::vector<Offsets> kOffsets =
    many_sizes() ? std::vector<Offsets>{{0, 0}, {1, 0}, {0, 1}, {3, 61}, {64, 64}, {4095, 8}}
                 : std::vector<Offsets>{{0, 0}, {3, 61}};

const Machine& machine() {
    static const Machine known = this_machine();
    return known;
}

// Whether the call makes the transfer, without regard to the transfer's settings.
bool makes(const Call& call, const Transfer& transfer) {
    const Place& source = transfer.path.source.place;
    const Place& destination = transfer.path.destination.place;
    return (!call.between || *call.between == std::pair{source.kind, destination.kind}) &&
           !(call.two_places && source == destination);
}

class Conformance : public ::testing::TestWithParam<Path> {
protected:
    // The transfers of the path that this machine supports.
    static std::vector<Transfer> runnable(std::size_t bytes, const Layout& layout = {}) {
        std::vector<Transfer> kept;
        for (Transfer& transfer : variations(GetParam(), machine(), layout)) {
            transfer.bytes = bytes;
            if (!unsupported_reason(transfer, machine())) kept.push_back(std::move(transfer));
        }
        return kept;
    }
    // Also in awkward layouts.
    static std::vector<Transfer> runnable_in_all_layouts(std::size_t bytes) {
        std::vector<Transfer> kept = runnable(bytes);
        for (const Shaped& shaped : awkward_layouts()) {
            std::ranges::move(runnable(shaped.bytes, shaped.layout), std::back_inserter(kept));
        }
        return kept;
    }
    // Skips sizes that the executor does not support, which it cannot know from the path alone.
    static std::unique_ptr<Execution> prepared(const Caller& caller, const Transfer& transfer) {
        try {
            return caller.prepare();
        } catch (const NotSupported& error) {
            EXPECT_LT(transfer.bytes, kBlock) << error.what();
            EXPECT_TRUE(one_line(error.what())) << error.what();
            return nullptr;
        }
    }
    static void moves_at_all_offsets(const Transfer& transfer) {
        SCOPED_TRACE(transfer.text());
        GuardedTransfer bytes(transfer, machine());
        const Caller caller(transfer, machine());
        const auto execution = prepared(caller, transfer);
        if (execution == nullptr) return;
        unsigned seed = 1;
        for (const Offsets offsets : kOffsets) {
            ASSERT_EQ(move_once(caller, *execution, bytes, offsets, seed++), "");
            if (!starts_anywhere(transfer, machine())) return;
        }
    }
};

TEST_P(Conformance, RejectsWithAReasonOrSaysHow) {
    std::vector<Transfer> all = variations(GetParam(), machine());
    for (Transfer& transfer : all) transfer.bytes = 4096;
    for (const Shaped& shaped : awkward_layouts()) {
        for (Transfer& transfer : variations(GetParam(), machine(), shaped.layout)) {
            transfer.bytes = shaped.bytes;
            all.push_back(std::move(transfer));
        }
    }
    for (const Transfer& transfer : all) {
        SCOPED_TRACE(transfer.text());
        const Executor& executor = *Executors::instance().find(transfer.path.executor);
        if (const auto reason = unsupported_reason(transfer, machine())) {
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

TEST_P(Conformance, RejectsSettingsItDoesNotHave) {
    for (const char* name : {"no such parameter", ""}) {
        const auto reason = unsupported_reason({GetParam(), 4096, {{name, "1"}}}, machine());
        ASSERT_TRUE(reason.has_value());
        EXPECT_TRUE(one_line(*reason)) << *reason;
    }
}

TEST_P(Conformance, ShowsTheDefaultsOfItsSettingsInCalls) {
    const Executor& executor = *Executors::instance().find(GetParam().executor);
    for (const Transfer& transfer : runnable_in_all_layouts(4096)) {
        SCOPED_TRACE(transfer.text());
        for (const Call& call : executor.traits().calls) {
            if (!makes(call, transfer)) continue;
            for (const Parameter& parameter : executor.parameters(transfer, machine())) {
                const auto shown = call.defaults.find(parameter.name);
                if (shown == call.defaults.end()) continue;
                EXPECT_EQ(shown->second, parameter.fallback()) << call.text;
            }
        }
    }
}

TEST_P(Conformance, BringsTheRightBytesAndNoOthers) {
    for (const std::size_t bytes : kSizes) {
        for (const Transfer& transfer : runnable(bytes)) {
            // Memory that starts only at granules is slow to allocate, and has no odd addresses.
            const bool plain = many_sizes() && transfer.parameters.empty() &&
                               transfer.path == GetParam() && starts_anywhere(transfer, machine());
            if (!plain && std::ranges::find(kFewSizes, bytes) == kFewSizes.end()) continue;
            ASSERT_NO_FATAL_FAILURE(moves_at_all_offsets(transfer));
        }
    }
}

TEST_P(Conformance, MovesRunsAndNothingBetween) {
    for (const Shaped& shaped : awkward_layouts()) {
        for (const Transfer& transfer : runnable(shaped.bytes, shaped.layout)) {
            ASSERT_NO_FATAL_FAILURE(moves_at_all_offsets(transfer));
        }
    }
}

// Work enqueued several times before a wait, like batches of small transfers. Only for transfers
// that may be repeated without a restore.
TEST_P(Conformance, StartsRepeatedlyWithoutWaiting) {
    for (const Transfer& transfer : runnable_in_all_layouts(kBlock + 3)) {
        SCOPED_TRACE(transfer.text());
        // Memory that starts only at granules is slow to allocate: files and migrating memory.
        const std::size_t times = starts_anywhere(transfer, machine()) ? 16 : 3;
        GuardedTransfer bytes(transfer, machine(), times);
        bytes.lay({}, 5);
        const Caller caller(transfer, machine());
        const auto execution = caller.prepare();
        const bool device = caller.timing() == TimingMode::device;
        for (std::size_t time = 0; time < times; ++time) {
            execution->restore(bytes.source(time), bytes.destination(time));
        }
        for (std::size_t time = 0; time < times; ++time) {
            execution->start(bytes.source(time), bytes.destination(time));
            if (!device) execution->finish();
        }
        if (device) caller.lanes().front()->synchronize();
        EXPECT_EQ(bytes.wrong(), "");
    }
}

// Runs the transfer once, closes a gate on its lanes, and starts it behind the gate.
void expect_to_wait_behind_a_gate(const Transfer& transfer) {
    constexpr auto kPatience = std::chrono::seconds(180);
    SCOPED_TRACE(transfer.text());
    const Caller caller(transfer, machine());
    const GuardedTransfer bytes(transfer, machine());
    const auto execution = caller.prepare();
    const View from = bytes.source();
    const View to = bytes.destination();
    caller.run(*execution, from, to);  // the first execution is never gated
    execution->restore(from, to);
    gpu::Gate gate{0};
    for (gpu::Stream* lane : caller.lanes()) gate.close(*lane);
    auto started = std::async(std::launch::async, [&] { execution->start(from, to); });
    const bool returned = started.wait_for(kPatience) == std::future_status::ready;
    const bool waits = !caller.lanes().front()->done();
    gate.open();
    started.get();
    for (gpu::Stream* lane : caller.lanes()) lane->synchronize();
    EXPECT_TRUE(returned) << "start() blocks behind a closed gate";
    EXPECT_TRUE(waits) << "the timed lane did not wait for the gate";
}

// A transfer with device timing must not block its host while the gate is closed.
TEST_P(Conformance, DeviceTimedStartsReturnBehindAClosedGate) {
    const auto by_device = [](const Transfer& transfer) {
        return Caller(transfer, machine()).timing() == TimingMode::device;
    };
    for (const Transfer& transfer : runnable_in_all_layouts(many_sizes() ? kMiB : 64 * kKiB)) {
        if (by_device(transfer)) expect_to_wait_behind_a_gate(transfer);
    }
    // Runtimes change methods with the size, the fake above 1 MiB.
    const std::size_t large = gpu::backend() == "fake" ? 2 * kMiB : 64 * kMiB;
    for (const std::size_t bytes : {std::size_t{8}, large}) {
        for (const Transfer& transfer : runnable(bytes)) {
            if (!many_sizes() && !transfer.parameters.empty()) continue;
            if (by_device(transfer)) expect_to_wait_behind_a_gate(transfer);
        }
    }
}

TEST_P(Conformance, LeavesNoMemoryBehind) {
    // The fake keeps no memory; a runtime does, in steps of 2 MiB.
    const bool fake = gpu::backend() == "fake";
    const std::size_t most = fake ? kBlock * 16 : 4 * kMiB;
    const std::size_t slack = fake ? 0 : 3 * kMiB;
    const auto on_gpu = [](const Transfer& transfer) {
        const auto needs = [](const Memory& memory) {
            return Memories::instance().find(memory.kind)->needs_gpu();
        };
        return needs(transfer.path.source) || needs(transfer.path.destination) ||
               !Caller(transfer, machine()).lanes().empty();
    };
    const auto work = [&] {
        for (const Transfer& transfer : runnable_in_all_layouts(most)) {
            if (!on_gpu(transfer)) continue;
            const GuardedTransfer bytes(transfer, machine());
            const Caller caller(transfer, machine());
            const auto execution = caller.prepare();
            caller.run(*execution, bytes.source(), bytes.destination());
        }
    };
    const auto free_bytes = [] {
        std::vector<std::size_t> bytes;
        for (const GpuPlace& gpu : machine().gpus) bytes.push_back(gpu::free_bytes(gpu.index));
        return bytes;
    };
    // A runtime may load code and allocate buffers at first use, and may keep pages of managed
    // memory for later: a leak repeats every time.
    const int rounds = fake ? 1 : 4;
    work();
    auto before = free_bytes();
    bool kept = true;
    for (int round = 0; round < rounds && kept; ++round) {
        work();
        const auto after = free_bytes();
        kept = false;
        for (std::size_t i = 0; i < before.size(); ++i) {
            kept = kept || after[i] + slack < before[i];
        }
        before = after;
    }
    EXPECT_FALSE(kept) << "less memory is free after each of " << rounds << " rounds";
}

std::string test_name(const ::testing::TestParamInfo<Path>& info) {
    std::string name = info.param.executor + "_" + info.param.source.text() + "_to_" +
                       info.param.destination.text();
    std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name + "_" + std::to_string(info.index);
}

// One in `case_stride()` paths of each executor, at least one of those that it supports.
std::vector<Path> some_paths() {
    std::map<std::string, std::vector<Path>> supported, others;
    for (const Path& path : paths(machine())) {
        const bool runs = !unsupported_reason({path, kBlock, {}}, machine());
        (runs ? supported : others)[path.executor].push_back(path);
    }
    std::vector<Path> kept;
    for (const auto& each : {supported, others}) {
        for (const auto& [executor, all] : each)
            std::ranges::copy(some_of(all), std::back_inserter(kept));
    }
    return kept;
}

INSTANTIATE_TEST_SUITE_P(Every, Conformance, ::testing::ValuesIn(some_paths()), test_name);

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
