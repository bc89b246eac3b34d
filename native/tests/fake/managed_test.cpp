#include <cstring>
#include <stdexcept>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"

namespace waywiser {
namespace {

using gpu::Location;

constexpr std::size_t kGranule = std::size_t{64} << 10;

class FakeManaged : public test::OnFake {
protected:
    gpu::Stream stream{0};
    gpu::ManagedBuffer managed{4 * kGranule, 0};

    [[nodiscard]] Location at(std::size_t granule) const {
        return fake::location(managed.data() + granule * kGranule);
    }
    double prefetch_seconds(Location to) {
        gpu::Event start(0);
        gpu::Event stop(0);
        start.record(stream);
        gpu::prefetch_async(managed.data(), managed.bytes(), to, stream);
        stop.record(stream);
        stop.synchronize();
        return gpu::seconds_between(start, stop);
    }
};

TEST_F(FakeManaged, MovesInStreamOrderAndByGranules) {
    gpu::Gate gate{0};
    gate.close(stream);
    gpu::prefetch_async(managed.data() + kGranule + 1, kGranule, {.device = 1}, stream);
    EXPECT_EQ(at(1), Location{}) << "not before the stream gets there";
    gate.open();
    stream.synchronize();
    EXPECT_EQ(at(0), Location{});
    EXPECT_EQ(at(1), (Location{.device = 1}));
    EXPECT_EQ(at(2), (Location{.device = 1}));
    EXPECT_EQ(at(3), Location{});
    gpu::prefetch_async(managed.data(), managed.bytes(), {.node = 0}, stream);
    stream.synchronize();
    EXPECT_EQ(at(1), (Location{.node = 0}));
}

TEST_F(FakeManaged, AFillBringsItToItsDevice) {
    gpu::fill_async(managed.data(), 1, 1, stream);
    stream.synchronize();
    EXPECT_EQ(at(0), (Location{.device = 0}));
    EXPECT_EQ(at(1), Location{});
}

TEST_F(FakeManaged, WhatIsThereAlreadyTakesNoTime) {
    fake::configure("h2d=0.005;d2h=0.01");
    const double bytes = 4 * kGranule;
    EXPECT_GE(prefetch_seconds({.device = 0}), bytes / 0.005e9);
    EXPECT_LT(prefetch_seconds({.device = 0}), bytes / 0.005e9 / 2);
    EXPECT_GE(prefetch_seconds({}), bytes / 0.01e9);
}

TEST_F(FakeManaged, PrefetchesAreStruckAsCopies) {
    fake::configure("drop=copy@1;fail=copy@2");
    gpu::prefetch_async(managed.data(), managed.bytes(), {.device = 0}, stream);
    stream.synchronize();
    EXPECT_EQ(at(0), Location{});
    EXPECT_THROW(gpu::prefetch_async(managed.data(), 1, {.device = 0}, stream), gpu::Error);
    EXPECT_EQ(fake::counts().copies, 2u);
    fake::configure("flip=copy");
    managed.data()[9] = std::byte{4};
    gpu::prefetch_async(managed.data(), 10, {.device = 0}, stream);
    stream.synchronize();
    EXPECT_EQ(managed.data()[9], std::byte{5});
    fake::configure("hang=copy;block=copy");
    test::AsyncCall blocked([&] { gpu::prefetch_async(managed.data(), 1, {}, stream); });
    EXPECT_TRUE(blocked.blocks());
    fake::reset();
    EXPECT_TRUE(blocked.returns());
    stream.synchronize();
}

TEST_F(FakeManaged, OnlyManagedMemoryIsSentAndAsked) {
    const gpu::DeviceBuffer device(0, 64);
    EXPECT_THROW(gpu::prefetch_async(device.data(), 64, {}, stream), gpu::Error);
    EXPECT_THROW(gpu::advise(device.data(), 64, gpu::Advice::read_mostly, {}), gpu::Error);
    EXPECT_THROW(gpu::prefetch_async(managed.data(), 4 * kGranule + 1, {}, stream), gpu::Error);
    EXPECT_THROW(gpu::prefetch_async(managed.data(), 1, {.device = 2}, stream), gpu::Error);
    EXPECT_THROW(fake::location(device.data()), std::out_of_range);
    EXPECT_THROW(fake::location(managed.data() + managed.bytes()), std::out_of_range);
    EXPECT_NO_THROW(gpu::advise(managed.data(), 64, gpu::Advice::accessed_by, {.device = 1}));
}

}  // namespace
}  // namespace waywiser
