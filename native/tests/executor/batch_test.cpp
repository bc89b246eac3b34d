// Batched copies: few calls for a list, and the reasons when they are not supported.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "executor/shaped_transfers.hpp"
#include "fake/fixture.hpp"
#include "many_bytes.hpp"

namespace waywiser {
namespace {

using test::at;
using test::in_box;
using test::in_list;

TEST(Batch, TakesListsToAndFromGpus) {
    const Machine machine = test::three_gpus();
    const Memory host = at("pinned", "numa:0");
    const Memory gpu = at("device", "gpu:0");
    EXPECT_EQ(test::reason(in_list("batch", host, gpu), machine), "");
    EXPECT_EQ(test::reason(in_list("batch", gpu, at("device", "gpu:1")), machine), "");
    EXPECT_EQ(test::reason(in_list("batch", host, host), machine),
              "a batched copy needs a side on a GPU");
    EXPECT_EQ(test::reason(in_list("batch", gpu, at("device", "gpu:2")), machine),
              "gpu:0 and gpu:2 cannot access each other's memory directly");
    EXPECT_NE(test::reason(in_box("batch", host, gpu), machine), "");
    EXPECT_NE(test::reason({{host, gpu, "batch"}, 512, {}}, machine), "");
}

class BatchOnFake : public test::OnFake {
protected:
    const Machine machine = test::this_machine();
};

TEST_F(BatchOnFake, MovesTheSameAndOtherBytesAgain) {
    const Transfer transfer = in_list("batch", at("pinned", "numa:0"), at("device", "gpu:1"));
    test::Ready ready(transfer, machine);
    EXPECT_EQ(ready.again(), "");
    unsigned seed = 20;
    for (const test::Offsets offsets : {test::Offsets{64, 0}, {64, 128}, {0, 0}}) {
        EXPECT_EQ(move_once(ready.caller, *ready.execution, ready.bytes, offsets, seed++), "");
    }
}

TEST_F(BatchOnFake, IsACallForEvery1024Pieces) {
    for (const std::size_t pieces : {1UL, 1024UL, 1025UL, 3000UL}) {
        for (const char* access : {"stream", "any"}) {
            Transfer transfer = in_list("batch", at("device", "gpu:0"), at("device", "gpu:1"));
            transfer.layout.settings["piece"] = "24";
            transfer.bytes = 24 * pieces;
            transfer.parameters["access"] = access;
            test::Ready ready(transfer, machine);
            ready.bytes.lay({}, 9);
            const auto before = fake::counts().copies;
            ready.caller.run(*ready.execution, ready.bytes.source(), ready.bytes.destination());
            EXPECT_EQ(fake::counts().copies, before + (pieces + 1023) / 1024);
            EXPECT_EQ(ready.bytes.wrong(), "");
        }
    }
}

// Two transfers whose views and arrangements have the same addresses, one after the other.
TEST_F(BatchOnFake, KeepsNothingOfTheBytesThatItMovedBefore) {
    for (const char* executor : {"batch", "sm", "pack"}) {
        const Transfer lists[] = {
            in_list(executor, at("pinned", "numa:0"), at("device", "gpu:1"), "source"),
            in_list(executor, at("pinned", "numa:0"), at("device", "gpu:1"), "both")};
        const gpu::HostBuffer source(std::size_t{1} << 15, gpu::HostUse::portable, 0);
        const gpu::DeviceBuffer destination(1, std::size_t{1} << 15);
        const auto sent = test::sequence(source.bytes(), 3);
        std::ranges::copy(sent, source.data());
        Arrangement out;
        Arrangement in;
        for (int round = 0; round < 2; ++round) {
            for (const Transfer& transfer : lists) {
                out = arrange(transfer, Side::source);
                in = arrange(transfer, Side::destination);
                std::vector<std::byte> expected(in.extent, std::byte{0xEE});
                gpu::copy_sync(destination.data(), expected.data(), in.extent, 1);
                for (std::size_t n = 0; n < in.count; ++n) {
                    std::copy_n(sent.data() + out.offset(n), out.run,
                                expected.data() + in.offset(n));
                }
                const test::Caller caller(transfer, machine);
                const auto execution = caller.prepare();
                caller.run(*execution, {source.data(), transfer.bytes, &transfer.path.source, &out},
                           {destination.data(), transfer.bytes, &transfer.path.destination, &in});
                EXPECT_TRUE(test::same_bytes(destination.data(), expected.data(), in.extent))
                    << transfer.text();
            }
        }
    }
}

TEST_F(BatchOnFake, RejectsAViewThatLiesOtherwise) {
    const Transfer transfer = in_list("batch", at("pinned", "numa:0"), at("device", "gpu:1"));
    test::Ready ready(transfer, machine);
    View source = ready.bytes.source();
    Arrangement shorter = *source.arrangement;
    --shorter.count;
    source.arrangement = &shorter;
    EXPECT_THROW(ready.execution->start(source, ready.bytes.destination()), NotSupported);
}

TEST_F(BatchOnFake, SaysWhatIsTooOld) {
    fake::configure("without=batch");
    const Transfer transfer = in_list("batch", at("pinned", "numa:0"), at("device", "gpu:1"));
    const test::Caller caller(transfer, machine);
    try {
        const auto execution = caller.prepare();
        FAIL() << "there is no batched copy";
    } catch (const NotSupported& error) {
        EXPECT_NE(std::string(error.what()).find("12.8"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace waywiser
