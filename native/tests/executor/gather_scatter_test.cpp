// Gather and scatter through staging memory on the GPU: which lists, and what it needs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "executor/shaped_transfers.hpp"
#include "fake/fixture.hpp"

namespace waywiser {
namespace {

using test::at;
using test::in_box;
using test::in_list;

const Executor& gather() { return *Executors::instance().find("gather-scatter"); }

TEST(Gather, TakesListsThatAreContiguousOnTheHost) {
    const Machine machine = test::three_gpus();
    const Memory host = at("pinned", "numa:0");
    const Memory gpu = at("device", "gpu:0");
    EXPECT_EQ(test::reason(in_list("gather-scatter", host, gpu, "destination"), machine), "");
    EXPECT_EQ(test::reason(in_list("gather-scatter", gpu, host, "source"), machine), "");
    EXPECT_EQ(test::reason(in_list("gather-scatter", gpu, host, "destination"), machine),
              "the pieces have to be contiguous in host memory: scattered=source");
    EXPECT_NE(test::reason(in_list("gather-scatter", gpu, host), machine), "");
    EXPECT_NE(
        test::reason(in_list("gather-scatter", gpu, at("device", "gpu:1"), "source"), machine), "");
    EXPECT_NE(test::reason(in_list("gather-scatter", at("pageable", "numa:0"), gpu, "destination"),
                           machine),
              "");
    EXPECT_NE(test::reason(in_box("gather-scatter", host, gpu), machine), "");
    EXPECT_NE(test::reason({{host, gpu, "gather-scatter"}, 512, {}}, machine), "");
}

TEST(Gather, CountsItsStagingAndTable) {
    const Machine machine = test::three_gpus();
    Transfer transfer =
        in_list("gather-scatter", at("device", "gpu:1"), at("pinned", "numa:0"), "source");
    transfer.parameters = {{"chunk", "1048576"}, {"slots", "3"}};
    constexpr std::size_t kSlot = 4UL << 20;  // three chunks in a slot of a power of two
    EXPECT_EQ(gather().requirements(transfer, machine).device_bytes,
              (std::map<int, std::size_t>{{1, kSlot + 12 * sizeof(std::size_t)}}));
    EXPECT_EQ(gather().lanes(transfer, machine), std::vector{1});
}

class GatherOnFake : public test::OnFake {
protected:
    const Machine machine = test::this_machine();
};

TEST_F(GatherOnFake, MovesTheSameAndOtherBytesAgain) {
    const Memory host = at("pinned", "numa:0");
    const Memory gpu = at("device", "gpu:1");
    for (const bool to_host : {false, true}) {
        Transfer transfer = to_host ? in_list("gather-scatter", gpu, host, "source")
                                    : in_list("gather-scatter", host, gpu, "destination");
        transfer.layout.settings["piece"] = "5000";
        transfer.bytes = 5000UL * 700;
        transfer.parameters = {{"chunk", "1048576"}, {"slots", "2"}};
        test::Ready ready(transfer, machine);
        EXPECT_EQ(ready.again(), "");
        unsigned seed = 20;
        for (const test::Offsets offsets : {test::Offsets{64, 0}, {64, 128}, {0, 0}}) {
            EXPECT_EQ(move_once(ready.caller, *ready.execution, ready.bytes, offsets, seed++), "");
        }
    }
}

}  // namespace
}  // namespace waywiser
