#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "host/affinity.hpp"
#include "transfer/engine.hpp"
#include "waywiser/executor.hpp"

namespace waywiser {
namespace {

// Two ordinary nodes of different size, and one with memory but without CPUs.
const Machine kMachine{{{0, {0, 1, 2, 3, 4, 5}}, {1, {6, 7}}, {2, {}}}, {}};

Transfer copy(int from, int to, const Settings& parameters = {}) {
    const auto at = [](int node) { return Memory{"pageable", {Place::Kind::numa, node, {}}, {}}; };
    return {{at(from), at(to), "cpu"}, 64, parameters};
}

std::string value(const Transfer& transfer, const char* name) {
    return parameter(*Executors::instance().find("cpu"), transfer, kMachine, name);
}

TEST(CpuExecutor, CopiesFromTheSideThatHasCpus) {
    EXPECT_EQ(value(copy(0, 1), "side"), "pull");
    EXPECT_EQ(value(copy(0, 2), "side"), "push");
    EXPECT_EQ(value(copy(2, 0), "side"), "pull");
    EXPECT_FALSE(unsupported_reason(copy(0, 2), kMachine));
    EXPECT_TRUE(unsupported_reason(copy(2, 0, {{"side", "push"}}), kMachine));
    EXPECT_TRUE(unsupported_reason(copy(2, 2), kMachine));
}

TEST(CpuExecutor, HasNoMoreThreadsThanEitherSideHasCpus) {
    EXPECT_FALSE(unsupported_reason(copy(0, 0, {{"threads", "6"}}), kMachine));
    EXPECT_FALSE(unsupported_reason(copy(2, 0, {{"threads", "6"}}), kMachine));
    EXPECT_FALSE(unsupported_reason(copy(0, 1, {{"threads", "2"}, {"side", "push"}}), kMachine));
    EXPECT_TRUE(unsupported_reason(copy(1, 0, {{"threads", "3"}, {"side", "push"}}), kMachine));
}

TEST(CpuExecutor, CopiesWhetherItsThreadsWereWokenOrNot) {
    const Machine here{{{0, host::allowed_cpus()}}, {}};
    const Transfer transfer = copy(0, 0, {{"threads", here.numa[0].cpus.size() > 1 ? "2" : "1"}});
    const auto engine_owner = transfer::Engine::make(here, {});
    transfer::Engine& engine = *engine_owner;
    const auto execution = Executors::instance().find("cpu")->prepare(transfer, here, {}, engine);
    std::vector<std::byte> from(100000, std::byte{1});
    std::vector<std::byte> to(from.size());
    for (int round = 0; round < 3; ++round) {
        if (round > 0) execution->wake();
        std::ranges::fill(to, std::byte{0});
        execution->start({from.data(), from.size(), &transfer.path.source},
                         {to.data(), to.size(), &transfer.path.destination});
        execution->finish();
        EXPECT_EQ(to, from);
    }
}

}  // namespace
}  // namespace waywiser
