#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async_call.hpp"
#include "conformance.hpp"
#include "failure.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"

namespace waywiser {
namespace {

using test::AsyncCall;
using test::failure;

// One stream, and memory on both sides of it.
class FakeFaults : public test::OnFake {
protected:
    gpu::Stream stream{0};
    gpu::DeviceBuffer device{0, 64};
    gpu::HostBuffer host{64, gpu::HostUse::portable, 0};

    void copy(std::size_t bytes = 64) {
        gpu::copy_async(device.data(), host.data(), bytes, stream);
    }
    // Whether the copy moves its bytes.
    bool arrives(std::size_t bytes = 64) {
        std::fill_n(host.data(), bytes, std::byte{0x5C});
        std::fill_n(device.data(), bytes, std::byte{0x11});
        copy(bytes);
        stream.synchronize();
        return std::equal(host.data(), host.data() + bytes, device.data());
    }
};

struct Nothing {
    void operator()(gpu::Thread) const {}
};

TEST_F(FakeFaults, OutOfMemoryStrikesAnyAllocation) {
    std::vector<std::byte> bytes(64);
    const std::array<std::function<void()>, 3> allocations = {
        [] { gpu::DeviceBuffer buffer(0, 64); },
        [] { gpu::HostBuffer buffer(64, gpu::HostUse::portable, 0); },
        [&] { gpu::Registration registration(bytes.data(), 64, 0); }};
    for (std::size_t struck = 0; struck < 3; ++struck) {
        fake::configure("oom_at=" + std::to_string(struck + 1));
        for (std::size_t i = 0; i < 3; ++i) {
            if (i == struck) {
                EXPECT_EQ(failure(allocations[i]), gpu::Failure::out_of_memory);
            } else {
                EXPECT_NO_THROW(allocations[i]());
            }
        }
    }
    EXPECT_EQ(fake::counts().allocations, 3u);
}

TEST_F(FakeFaults, AStickyErrorFailsEverythingAfterIt) {
    gpu::Event event(0);
    for (const char* text : {"sticky=copy@2", "sticky=launch", "sticky=event@3"}) {
        fake::configure(text);
        const auto everything = [&] {
            for (int i = 0; i < 3; ++i) {
                event.record(stream);
                copy();
                gpu::launch(stream, {}, Nothing{});
            }
        };
        EXPECT_EQ(failure(everything), gpu::Failure::sticky);
        EXPECT_EQ(failure([&] { copy(); }), gpu::Failure::sticky);
        EXPECT_EQ(failure([&] { stream.synchronize(); }), gpu::Failure::sticky);
        EXPECT_EQ(failure([&] { event.record(stream); }), gpu::Failure::sticky);
        EXPECT_EQ(failure([&] { event.synchronize(); }), gpu::Failure::sticky);
        EXPECT_EQ(failure([] { gpu::DeviceBuffer buffer(0, 64); }), gpu::Failure::sticky);
        EXPECT_EQ(failure([] { gpu::synchronize_device(0); }), gpu::Failure::sticky);
        EXPECT_EQ(failure([] { gpu::Stream more(0); }), gpu::Failure::sticky);
    }
}

TEST_F(FakeFaults, ALostContextReleasesItsGates) {
    gpu::Gate gate{0};
    gate.close(stream);
    copy();
    gpu::Event event(0);
    fake::configure("sticky=event");
    EXPECT_THROW(event.record(stream), gpu::Error);
    EXPECT_TRUE(AsyncCall([&] { EXPECT_THROW(stream.synchronize(), gpu::Error); }).returns());
}

TEST_F(FakeFaults, AnErrorOnTheStreamSurfacesAtTheNextSynchronisation) {
    fake::configure("lost=copy");
    EXPECT_NO_THROW(copy());
    EXPECT_EQ(failure([&] { stream.synchronize(); }), gpu::Failure::sticky);
}

TEST_F(FakeFaults, AnOrdinaryErrorPasses) {
    fake::configure("fail=copy");
    EXPECT_EQ(failure([&] { copy(); }), gpu::Failure::other);
    EXPECT_TRUE(arrives());
}

TEST_F(FakeFaults, AHungCopyHoldsItsStream) {
    fake::configure("hang=copy");
    copy();
    AsyncCall waiting([&] { stream.synchronize(); });
    EXPECT_TRUE(waiting.blocks());
    fake::reset();
    EXPECT_TRUE(waiting.returns());
}

TEST_F(FakeFaults, AHangEndsWithItsConfigurationEvenIfTheStreamGetsThereLater) {
    gpu::Gate gate(0);
    gate.close(stream);
    fake::configure("hang=copy");
    copy();
    fake::reset();
    gate.open();
    EXPECT_TRUE(AsyncCall([&] { stream.synchronize(); }).returns());
}

TEST_F(FakeFaults, AHungCopyThatBlocksHoldsItsCaller) {
    fake::configure("hang=copy@/1");
    std::vector<std::byte> pageable(64);
    AsyncCall blocked([&] { gpu::copy_async(pageable.data(), device.data(), 64, stream); });
    EXPECT_TRUE(blocked.blocks());
    gpu::DeviceBuffer other(0, 64);  // both copies go on at the same time
    AsyncCall synchronous([&] { gpu::copy_sync(other.data(), host.data(), 64, 0); });
    EXPECT_TRUE(synchronous.blocks());
    fake::reset();
    EXPECT_TRUE(blocked.returns());
    EXPECT_TRUE(synchronous.returns());
}

TEST_F(FakeFaults, ACopyCanArriveWrongOrNotAtAll) {
    fake::configure("flip=copy@2");
    EXPECT_TRUE(arrives());
    EXPECT_FALSE(arrives());
    EXPECT_TRUE(arrives());
    fake::configure("drop=copy");
    EXPECT_FALSE(arrives());
    EXPECT_TRUE(arrives());
}

TEST_F(FakeFaults, StrikesOnlyCopiesOfTheSizeAskedFor) {
    fake::configure("drop=copy@2;only_bytes=32");
    EXPECT_TRUE(arrives(32));
    EXPECT_TRUE(arrives(64));
    EXPECT_FALSE(arrives(32));
    EXPECT_EQ(fake::counts().copies, 2u);
}

TEST_F(FakeFaults, StrikesOnlyTheProcessThatClaimsTheFile) {
    const std::string file = ::testing::TempDir() + "waywiser_once";
    std::filesystem::remove(file);
    const std::string text = "drop=copy@/1;once=" + file;
    fake::configure(text);
    EXPECT_FALSE(arrives());
    EXPECT_FALSE(arrives());
    EXPECT_TRUE(std::filesystem::exists(file));
    fake::configure(text);  // as the next process would
    EXPECT_TRUE(arrives());
    std::filesystem::remove(file);
}

using FakeCrash = FakeFaults;

TEST_F(FakeCrash, KillsTheProcess) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            test::remove_files();
            fake::configure("crash=copy");
            copy();
        },
        "");
}

TEST(FakeDevice, LooksLikeAMachine) {
    fake::reset();
    ASSERT_EQ(gpu::device_count(), 2);
    EXPECT_EQ(gpu::backend(), "fake");
    EXPECT_EQ(gpu::unavailable_reason(), "");
    const gpu::Device device = gpu::device(1);
    EXPECT_EQ(device.name, "Fake GPU");
    EXPECT_EQ(device.uuid, "GPU-fake0000-0000-0000-0000-000000000001");
    EXPECT_NE(gpu::device(0).pci, device.pci);
    EXPECT_THROW(static_cast<void>(gpu::device(2)), gpu::Error);
}

TEST(FakeDevice, CanLackPeers) {
    fake::configure("devices=3;no_peers=0-1");
    EXPECT_FALSE(gpu::can_access_peer(0, 1));
    EXPECT_TRUE(gpu::can_access_peer(0, 2));
    EXPECT_THROW(gpu::enable_peer_access(1, 0), gpu::Error);
    gpu::enable_peer_access(0, 2);
    gpu::enable_peer_access(0, 2);
    fake::reset();
}

TEST(FakeDevice, IsNoneInAChildOfAProcessThatHasUsedOne) {
    const auto reason_in_child = [] {
        std::array<int, 2> ends{};
        EXPECT_EQ(pipe(ends.data()), 0);
        const pid_t child = fork();
        if (child == 0) {
            const bool fails = failure([] { gpu::free_bytes(0); }) == gpu::Failure::unavailable;
            const std::string reason = gpu::unavailable_reason();
            const bool written = write(ends[1], reason.data(), reason.size()) >= 0;
            _exit(written && fails == !reason.empty() && (gpu::device_count() == 0) == fails ? 0
                                                                                             : 1);
        }
        close(ends[1]);
        std::array<char, 200> text{};
        const ssize_t got = read(ends[0], text.data(), text.size());
        close(ends[0]);
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    };
    fake::reset();
    EXPECT_EQ(reason_in_child(), "");
    EXPECT_EQ(gpu::device_count(), 2);
    EXPECT_EQ(reason_in_child(), gpu::kForkedReason);
    EXPECT_EQ(gpu::unavailable_reason(), "") << "the parent still has its GPUs";
    fake::reset();
}

TEST(FakeDevice, CanLackADriver) {
    fake::configure("unavailable=no driver here: install one");
    EXPECT_EQ(gpu::device_count(), 0);
    EXPECT_EQ(gpu::unavailable_reason(), "no driver here: install one");
    EXPECT_EQ(failure([] { gpu::Stream stream(0); }), gpu::Failure::unavailable);
    fake::reset();
}

}  // namespace
}  // namespace waywiser
