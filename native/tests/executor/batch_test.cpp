// Batched copies: one call for a list, and what they are refused for.
#include <gtest/gtest.h>

#include "executor/shaped_transfers.hpp"
#include "fake/fixture.hpp"

namespace waywiser {
namespace {

using test::at;
using test::in_box;
using test::in_list;

std::string reason(const Transfer& transfer, const Machine& machine) {
    return refusal(transfer, machine).value_or("");
}

TEST(Batch, TakesListsToAndFromGpus) {
    const Machine machine = test::three_gpus();
    const Memory host = at("pinned", "numa:0");
    const Memory gpu = at("device", "gpu:0");
    EXPECT_EQ(reason(in_list("batch", host, gpu), machine), "");
    EXPECT_EQ(reason(in_list("batch", gpu, at("device", "gpu:1")), machine), "");
    EXPECT_EQ(reason(in_list("batch", host, host), machine),
              "a batched copy needs a side on a GPU");
    EXPECT_EQ(reason(in_list("batch", gpu, at("device", "gpu:2")), machine),
              "gpu:0 and gpu:2 cannot access each other's memory directly");
    EXPECT_NE(reason(in_box("batch", host, gpu), machine), "");
    EXPECT_NE(reason({{host, gpu, "batch"}, 512, {}}, machine), "");
}

class BatchOnFake : public test::OnFake {
protected:
    const Machine machine = test::this_machine();
};

// The addresses of the pieces are worked out once, and anew for other bytes.
TEST_F(BatchOnFake, MovesTheSameAndOtherBytesAgain) {
    const Transfer transfer = in_list("batch", at("pinned", "numa:0"), at("device", "gpu:1"));
    test::Ready ready(transfer, machine);
    EXPECT_EQ(ready.again(), "");
    unsigned seed = 20;
    for (const test::Offsets offsets : {test::Offsets{64, 0}, {64, 128}, {0, 0}}) {
        EXPECT_EQ(move_once(ready.caller, *ready.execution, ready.bytes, offsets, seed++), "");
    }
}

TEST_F(BatchOnFake, IsOneCallForAllPieces) {
    for (const char* access : {"stream", "any"}) {
        Transfer transfer = in_list("batch", at("device", "gpu:0"), at("device", "gpu:1"));
        transfer.parameters["access"] = access;
        test::Ready ready(transfer, machine);
        ready.bytes.lay({}, 9);
        const auto before = fake::counts().copies;
        ready.caller.run(*ready.execution, ready.bytes.source(), ready.bytes.destination());
        EXPECT_EQ(fake::counts().copies, before + 1);
    }
}

TEST_F(BatchOnFake, SaysWhatIsTooOld) {
    fake::configure("without=batch");
    const Transfer transfer = in_list("batch", at("pinned", "numa:0"), at("device", "gpu:1"));
    const test::Caller caller(transfer, machine);
    try {
        const auto execution = caller.prepare();
        FAIL() << "there is no batched copy";
    } catch (const Refused& refused) {
        EXPECT_NE(std::string(refused.what()).find("12.8"), std::string::npos) << refused.what();
    }
}

}  // namespace
}  // namespace waywiser
