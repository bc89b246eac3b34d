// Device memory from each allocator of the seam: used, shared and freed.
#include <unistd.h>

#include <fstream>
#include <string>

#include "conformance_seam.hpp"

namespace waywiser {
namespace {

struct Allocator {
    gpu::DeviceUse use;
    const char* name;
    bool gpu::Device::* has;
};

class SeamDeviceMemory : public Seam, public ::testing::WithParamInterface<Allocator> {
protected:
    void SetUp() override {
        Seam::SetUp();
        if (IsSkipped()) return;
        const bool gpu::Device::* has = GetParam().has;
        if (has != nullptr && !(gpu::device(0).*has)) GTEST_SKIP() << "not supported here";
    }
    [[nodiscard]] static gpu::DeviceBuffer buffer(int device, std::size_t bytes) {
        return gpu::DeviceBuffer(device, bytes, GetParam().use);
    }
};

TEST_P(SeamDeviceMemory, IsFilledAndCopied) {
    const gpu::Stream stream(0);
    for (const std::size_t size : {std::size_t{1}, std::size_t{4097}, 5 * kMiB + 3}) {
        const gpu::DeviceBuffer first = buffer(0, size);
        const gpu::DeviceBuffer second = buffer(0, size);
        ASSERT_EQ(first.bytes(), size);
        const std::vector<std::byte> filled(size, std::byte{0x42});
        gpu::fill_async(first.data(), 0x42, size, stream);
        gpu::copy_async(second.data(), first.data(), size, stream);
        EXPECT_TRUE(test::same_bytes(read(stream, second.data(), size), filled));
        const auto bytes = test::sequence(size, 9);
        write(stream, second.data(), bytes);
        EXPECT_TRUE(test::same_bytes(read(stream, second.data(), size), bytes));
        EXPECT_TRUE(test::same_bytes(read(stream, first.data(), size), filled));
    }
}

// Before peer access and after, with memory that was allocated before.
TEST_P(SeamDeviceMemory, IsCopiedBetweenDevices) {
    if (gpu::device_count() < 2) GTEST_SKIP() << "one GPU";
    const gpu::Stream stream(0);
    const gpu::Stream other(1);
    const auto bytes = test::sequence(kMiB, 21);
    const auto round = [&](const gpu::DeviceBuffer& here, const gpu::DeviceBuffer& there) {
        write(stream, here.data(), bytes);
        gpu::fill_async(there.data(), 0, kMiB, other);
        other.synchronize();
        gpu::copy_peer_async(there.data(), 1, here.data(), 0, kMiB, stream);
        stream.synchronize();
        EXPECT_TRUE(test::same_bytes(read(other, there.data(), kMiB), bytes));
    };
    const gpu::DeviceBuffer here = buffer(0, kMiB);
    const gpu::DeviceBuffer there = buffer(1, kMiB);
    round(here, there);
    if (!gpu::can_access_peer(0, 1)) return;
    gpu::enable_peer_access(0, 1);
    round(here, there);
    round(buffer(0, kMiB), buffer(1, kMiB));
}

// Child processes of this one.
std::size_t children() {
    std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    std::size_t count = 0;
    for (std::string pid; file >> pid;) ++count;
    return count;
}

TEST_P(SeamDeviceMemory, IsGivenBack) {
    constexpr std::size_t kBytes = 64 * kMiB;
    {
        const gpu::DeviceBuffer first = buffer(0, kBytes);
    }  // what the first use keeps is no leak
    const std::size_t children_before = children();
    const std::size_t before = gpu::free_bytes(0);
    for (int i = 0; i < 3; ++i) {
        const gpu::DeviceBuffer held = buffer(0, kBytes);
        EXPECT_LE(gpu::free_bytes(0) + kBytes, before + 2 * kMiB);
    }
    EXPECT_GE(gpu::free_bytes(0) + kBytes, before);
    EXPECT_EQ(children(), children_before);
}

INSTANTIATE_TEST_SUITE_P(
    Allocators, SeamDeviceMemory,
    ::testing::Values(Allocator{gpu::DeviceUse::plain, "plain", nullptr},
                      Allocator{gpu::DeviceUse::pool, "pool", &gpu::Device::memory_pools},
                      Allocator{gpu::DeviceUse::mapped, "mapped", &gpu::Device::vmm},
                      Allocator{gpu::DeviceUse::foreign, "foreign", &gpu::Device::ipc}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace waywiser
