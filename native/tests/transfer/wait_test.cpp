// Waiting for what a GPU still does after a failure.
#include "transfer/wait.hpp"

#include <gtest/gtest.h>

#include <string>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"

namespace waywiser::transfer {
namespace {

class Settling : public test::OnFake {};

// A call that waits for the stream has no limit.
TEST_F(Settling, AsksAgainIfAQueryFails) {
    for (const char* const faults : {"fail=query@1", "fail=query@/2", "fail=query@/3"}) {
        const gpu::DeviceBuffer device(0, 1);
        const gpu::Stream stream(0);
        gpu::Event event(0, gpu::EventUse::ordering);
        fake::configure("delay=0.02;" + std::string(faults));
        gpu::copy_async(device.data(), device.data(), 1, stream);
        event.record(stream);
        const std::size_t before = fake::counts().synchronisations;
        EXPECT_EQ(settle(event), Settled::yes);
        EXPECT_EQ(settle(stream), Settled::yes);
        EXPECT_EQ(fake::counts().synchronisations, before);
    }
}

TEST_F(Settling, WaitsWithoutQueriesIfAllOfThemFail) {
    const gpu::Stream stream(0);
    fake::configure("fail=query@1+");
    EXPECT_EQ(settle(stream), Settled::yes);
    EXPECT_EQ(fake::counts().synchronisations, 1U);
}

}  // namespace
}  // namespace waywiser::transfer
