#include "gpu/gpu.hpp"

#include <array>
#include <memory>
#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "units.hpp"

namespace waywiser {
namespace {

using gpu::Gate;
using gpu::Stream;
using test::AsyncCall;

// Buffers of every type, and streams blocked by a gate.
class FakeGate : public test::OnFake {
protected:
    Stream stream{0};
    Stream other_stream{1};
    gpu::DeviceBuffer device{0, 2 * kMiB};
    gpu::DeviceBuffer local{0, 2 * kMiB};
    gpu::DeviceBuffer other{1, 2 * kMiB};
    gpu::HostBuffer pinned{2 * kMiB, gpu::HostUse::portable, 0};
    gpu::HostBuffer other_pinned{2 * kMiB, gpu::HostUse::write_combined, 0};
    std::vector<std::byte> pageable = std::vector<std::byte>(2 * kMiB);
    Gate gate{0};

    template <class Work>
    void expect_blocks(Work work) {
        gate.close(stream);
        AsyncCall call(work);
        EXPECT_TRUE(call.blocks());
        gate.open();
        ASSERT_TRUE(call.returns());
        call.get();
        stream.synchronize();
    }
    template <class Work>
    void expect_passes(Work work) {
        gate.close(stream);
        AsyncCall call(work);
        const bool passed = call.returns();
        gate.open();
        EXPECT_TRUE(passed);
        call.get();
        stream.synchronize();
    }
};

TEST_F(FakeGate, HoldsStreamsOfAllDevicesUntilOpened) {
    gate.close(stream);
    gate.close(other_stream);
    gpu::fill_async(device.data(), 1, 64, stream);
    gpu::fill_async(other.data(), 1, 64, other_stream);
    EXPECT_FALSE(stream.done());
    EXPECT_FALSE(other_stream.done());
    gate.open();
    stream.synchronize();
    other_stream.synchronize();
    EXPECT_EQ(gate.kind(), "stream-wait-value");
}

TEST_F(FakeGate, ClosesAgainAfterOpening) {
    gate.open();  // opening before any closing has no effect
    for (int round = 0; round < 3; ++round) {
        gate.close(stream);
        EXPECT_FALSE(stream.done());
        gate.open();
        gate.open();
        stream.synchronize();
    }
}

TEST_F(FakeGate, OpensWhenItIsDestroyed) {
    auto brief = std::make_unique<Gate>(0);
    brief->close(stream);
    brief.reset();
    EXPECT_TRUE(AsyncCall([&] { stream.synchronize(); }).returns());
}

TEST_F(FakeGate, LetsPageLockedCopiesAndFillsBeEnqueued) {
    expect_passes([&] { gpu::copy_async(device.data(), pinned.data(), 2 * kMiB, stream); });
    expect_passes([&] { gpu::copy_async(pinned.data(), device.data(), 2 * kMiB, stream); });
    expect_passes([&] { gpu::copy_async(device.data(), other_pinned.data(), kMiB, stream); });
    expect_passes([&] { gpu::copy_async(local.data(), device.data(), 2 * kMiB, stream); });
    expect_passes([&] { gpu::fill_async(device.data(), 0, 2 * kMiB, stream); });
}

TEST_F(FakeGate, LetsPageableToDevicePassUpToOneMebibyte) {
    expect_passes([&] { gpu::copy_async(device.data(), pageable.data(), kMiB, stream); });
    expect_blocks([&] { gpu::copy_async(device.data(), pageable.data(), kMiB + 1, stream); });
}

TEST_F(FakeGate, BlocksDeviceToPageableOfAnySize) {
    expect_blocks([&] { gpu::copy_async(pageable.data(), device.data(), 1, stream); });
}

TEST_F(FakeGate, BlocksHostToHostEvenWherePageLocked) {
    expect_blocks([&] { gpu::copy_async(pinned.data(), other_pinned.data(), 64, stream); });
    expect_blocks([&] { gpu::copy_async(pinned.data(), pageable.data(), 64, stream); });
    expect_blocks([&] { gpu::copy_async(pageable.data(), pinned.data(), 64, stream); });
}

TEST_F(FakeGate, LetsSynchronousCopiesGoAroundIt) {
    expect_passes([&] { gpu::copy_sync(device.data(), pageable.data(), 64, 0); });
}

TEST_F(FakeGate, BlocksLargePeerCopiesWithoutPeerAccess) {
    constexpr std::size_t kLarge = 256 * kMiB + 1;
    fake::configure("staged=1000;peer=1000");
    const gpu::DeviceBuffer from(0, kLarge);
    const gpu::DeviceBuffer to(1, kLarge);
    const auto copy = [&](std::size_t bytes) {
        return [&, bytes] { gpu::copy_peer_async(to.data(), 1, from.data(), 0, bytes, stream); };
    };
    expect_passes(copy(kLarge - 1));
    expect_blocks(copy(kLarge));
    gpu::enable_peer_access(0, 1);
    expect_passes(copy(kLarge));
}

TEST_F(FakeGate, BlocksWhereTheQueueIsFull) {
    gpu::Event event(0);
    gate.close(stream);  // one entry
    for (int i = 1; i < 1020; ++i) event.record(stream);
    AsyncCall one_more([&] { event.record(stream); });
    EXPECT_TRUE(one_more.blocks());
    gate.open();
    EXPECT_TRUE(one_more.returns());
    stream.synchronize();
}

TEST_F(FakeGate, BlocksFreeingAndUnpinning) {
    auto freed = std::make_unique<gpu::DeviceBuffer>(0, 64);
    expect_blocks([&] { freed.reset(); });
    auto unlocked = std::make_unique<gpu::HostBuffer>(64, gpu::HostUse::portable, 0);
    expect_blocks([&] { unlocked.reset(); });
    auto unpinned = std::make_unique<gpu::Registration>(pageable.data(), 4096, 0);
    expect_blocks([&] { unpinned.reset(); });
    auto elsewhere = std::make_unique<gpu::DeviceBuffer>(1, 64);
    expect_passes([&] { elsewhere.reset(); });
}

TEST_F(FakeGate, ALostOpeningNeedsAnother) {
    fake::configure("gate=lost");
    gate.close(stream);
    gate.open();
    AsyncCall waiting([&] { stream.synchronize(); });
    EXPECT_TRUE(waiting.blocks());
    gate.open();
    EXPECT_TRUE(waiting.returns());
    gate.close(stream);
    gate.open();
    EXPECT_TRUE(AsyncCall([&] { stream.synchronize(); }).returns());
}

TEST_F(FakeGate, AStuckGateIsOpenedByNobody) {
    fake::configure("gate=stuck");
    gate.close(stream);
    gate.open();
    gate.open();
    AsyncCall waiting([&] { stream.synchronize(); });
    EXPECT_TRUE(waiting.blocks());
    fake::reset();
    EXPECT_TRUE(waiting.returns());
}

TEST_F(FakeGate, ACopyCanBeMadeToBlockThoughItNeedNot) {
    fake::configure("block=copy@2");
    const auto copy = [&] { gpu::copy_async(device.data(), pinned.data(), 64, stream); };
    expect_passes(copy);
    expect_blocks(copy);
    expect_passes(copy);
}

}  // namespace
}  // namespace waywiser
