// The seam alone, the same on the fake and on a real GPU: the right bytes and no others, by every
// call that moves or holds some.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "gpu/gpu.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::byte kUntouched{0xEE};

class Seam : public ::testing::Test {
protected:
    void SetUp() override {
        if (gpu::device_count() == 0) GTEST_SKIP() << gpu::unavailable_reason();
    }
};

std::vector<std::byte> read(const gpu::Stream& stream, const std::byte* data, std::size_t bytes) {
    const gpu::HostBuffer host(bytes, gpu::HostUse::portable);
    gpu::copy_async(host.data(), data, bytes, stream);
    stream.synchronize();
    return {host.data(), host.data() + bytes};
}

void write(const gpu::Stream& stream, std::byte* data, const std::vector<std::byte>& bytes) {
    const gpu::HostBuffer host(bytes.size(), gpu::HostUse::portable);
    std::ranges::copy(bytes, host.data());
    gpu::copy_async(data, host.data(), bytes.size(), stream);
    stream.synchronize();
}

TEST_F(Seam, PrefetchingThereAndBackKeepsTheBytes) {
    const gpu::Device device = gpu::device(0);
    if (!device.concurrent_managed) GTEST_SKIP() << "managed memory does not move by itself here";
    const gpu::Stream stream(0);
    const gpu::ManagedBuffer managed(3 * kMiB + 5);
    const auto bytes = test::sequence(managed.bytes(), 7);
    std::ranges::copy(bytes, managed.data());
    gpu::advise(managed.data(), managed.bytes(), gpu::Advice::accessed_by, {.device = 0});
    gpu::advise(managed.data(), managed.bytes(), gpu::Advice::preferred_location, {.device = 0});
    gpu::prefetch_async(managed.data(), managed.bytes(), {.device = 0}, stream);
    EXPECT_EQ(read(stream, managed.data(), managed.bytes()), bytes);
    gpu::prefetch_async(managed.data(), managed.bytes(), {}, stream);
    stream.synchronize();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), managed.data()));
    gpu::prefetch_async(managed.data(), managed.bytes(), {.device = 0}, stream);
    gpu::prefetch_async(managed.data() + kMiB, kMiB, {}, stream);
    stream.synchronize();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), managed.data()));
}

TEST_F(Seam, ManagedMemoryOfANodeIsReadWithAdvice) {
    if (!gpu::device(0).concurrent_managed) GTEST_SKIP() << "no managed memory that moves";
    const gpu::Stream stream(0);
    const gpu::ManagedBuffer managed(kMiB);
    const auto bytes = test::sequence(kMiB, 3);
    std::ranges::copy(bytes, managed.data());
    const int node = test::this_machine().numa.front().index;
    gpu::advise(managed.data(), kMiB, gpu::Advice::read_mostly, {.device = 0});
    gpu::advise(managed.data(), kMiB, gpu::Advice::accessed_by, {.node = node});
    gpu::prefetch_async(managed.data(), kMiB, {.device = 0}, stream);
    gpu::prefetch_async(managed.data(), kMiB, {.node = node}, stream);
    EXPECT_EQ(read(stream, managed.data(), kMiB), bytes);
}

// A box inside two arrays of different pitch, neither of which begins with it.
struct Arrays {
    static constexpr gpu::Box box{101, 7, 3};
    static constexpr std::size_t kSourcePitch = 160, kSourceRows = 9;
    static constexpr std::size_t kPitch = 211, kRows = 8;
    static constexpr std::size_t kSourceOffset = kSourcePitch + 17, kOffset = 2 * kPitch + 3;
    static constexpr std::size_t kSourceBytes = kSourceOffset + 3 * kSourceRows * kSourcePitch;
    static constexpr std::size_t kBytes = kOffset + 3 * kRows * kPitch;

    std::vector<std::byte> source = test::sequence(kSourceBytes, 11);

    [[nodiscard]] static gpu::Pitched from(std::byte* data) {
        return {data + kSourceOffset, kSourcePitch, kSourceRows};
    }
    [[nodiscard]] static gpu::Pitched to(std::byte* data) {
        return {data + kOffset, kPitch, kRows};
    }
    // What the destination holds after so many planes of the box arrived.
    [[nodiscard]] std::vector<std::byte> expected(std::size_t planes) const {
        std::vector<std::byte> bytes(kBytes, kUntouched);
        for (std::size_t z = 0; z < planes; ++z) {
            for (std::size_t y = 0; y < box.height; ++y) {
                const std::size_t at = kSourceOffset + (z * kSourceRows + y) * kSourcePitch;
                std::memcpy(bytes.data() + kOffset + (z * kRows + y) * kPitch, source.data() + at,
                            box.width);
            }
        }
        return bytes;
    }
};

// Page-locked, pageable and device memory: whatever the sides, the same bytes.
class SeamBoxes : public Seam {
protected:
    using Copy = std::function<void(gpu::Pitched, gpu::Pitched, const gpu::Stream&)>;

    void check(std::size_t planes, const Copy& copy) const {
        const gpu::Stream stream(0);
        const gpu::DeviceBuffer device_from(0, Arrays::kSourceBytes);
        const gpu::DeviceBuffer device_to(0, Arrays::kBytes);
        const gpu::HostBuffer pinned_from(Arrays::kSourceBytes, gpu::HostUse::portable);
        std::ranges::copy(arrays.source, pinned_from.data());
        write(stream, device_from.data(), arrays.source);
        auto pageable_from = arrays.source;
        for (std::byte* from : {device_from.data(), pinned_from.data(), pageable_from.data()}) {
            write(stream, device_to.data(), std::vector(Arrays::kBytes, kUntouched));
            copy(Arrays::to(device_to.data()), Arrays::from(from), stream);
            EXPECT_EQ(read(stream, device_to.data(), Arrays::kBytes), arrays.expected(planes));
        }
        const gpu::HostBuffer pinned_to(Arrays::kBytes, gpu::HostUse::portable);
        std::vector<std::byte> pageable_to(Arrays::kBytes);
        for (std::byte* to : {pinned_to.data(), pageable_to.data()}) {
            std::fill_n(to, Arrays::kBytes, kUntouched);
            copy(Arrays::to(to), Arrays::from(device_from.data()), stream);
            stream.synchronize();
            EXPECT_EQ(std::vector(to, to + Arrays::kBytes), arrays.expected(planes));
        }
    }

    const Arrays arrays;
};

TEST_F(SeamBoxes, BringTheRightBytesAndNoOthers) {
    check(Arrays::box.depth, [](gpu::Pitched to, gpu::Pitched from, const gpu::Stream& stream) {
        gpu::copy_box_async(to, from, Arrays::box, stream);
    });
}

TEST_F(SeamBoxes, OfOnePlaneNeedNoRows) {
    check(1, [](gpu::Pitched to, gpu::Pitched from, const gpu::Stream& stream) {
        to.rows = from.rows = 0;
        gpu::copy_box_async(to, from, {Arrays::box.width, Arrays::box.height, 1}, stream);
    });
}

TEST_F(SeamBoxes, RowsBringTheRightBytesAndNoOthers) {
    check(1, [](gpu::Pitched to, gpu::Pitched from, const gpu::Stream& stream) {
        gpu::copy_rows_async(to, from, Arrays::box.width, Arrays::box.height, stream);
    });
}

TEST_F(SeamBoxes, GoFromDeviceToDevice) {
    const int last = gpu::device_count() - 1;
    const gpu::Stream stream(0);
    const gpu::Stream far(last);
    const gpu::DeviceBuffer from(0, Arrays::kSourceBytes);
    const gpu::DeviceBuffer to(last, Arrays::kBytes);
    write(stream, from.data(), arrays.source);
    write(far, to.data(), std::vector(Arrays::kBytes, kUntouched));
    gpu::copy_box_peer_async(Arrays::to(to.data()), last, Arrays::from(from.data()), 0, Arrays::box,
                             stream);
    stream.synchronize();
    EXPECT_EQ(read(far, to.data(), Arrays::kBytes), arrays.expected(Arrays::box.depth));
}

TEST_F(Seam, BatchesBringTheRightBytesAndNoOthers) {
    if (!gpu::has_batch()) GTEST_SKIP() << "no batched copies here";
    constexpr std::size_t kPiece = 1237, kCount = 37, kApart = 2000;
    const gpu::Stream stream(0);
    const gpu::DeviceBuffer device(0, kCount * kApart);
    const gpu::HostBuffer pinned(kCount * kApart, gpu::HostUse::portable);
    const auto bytes = test::sequence(kCount * kApart, 5);
    for (const bool stream_order : {true, false}) {
        std::ranges::copy(bytes, pinned.data());
        write(stream, device.data(), std::vector(kCount * kApart, kUntouched));
        std::vector<void*> to;
        std::vector<const void*> from;
        std::vector<std::byte> expected(kCount * kApart, kUntouched);
        for (std::size_t i = 0; i < kCount; ++i) {
            const std::size_t at = i * kApart + 3;
            const std::size_t of = (kCount - 1 - i) * kApart + 1;
            to.push_back(device.data() + at);
            from.push_back(pinned.data() + of);
            std::copy_n(bytes.data() + of, kPiece, expected.data() + at);
        }
        gpu::copy_batch_async(to, from, kPiece, stream_order, stream);
        EXPECT_EQ(read(stream, device.data(), expected.size()), expected);
    }
}

TEST_F(Seam, GraphsCopyAtEachLaunchWhatIsThereThen) {
    const gpu::Stream stream(0);
    const gpu::DeviceBuffer device(0, 4096);
    const gpu::HostBuffer from(4096, gpu::HostUse::portable);
    const gpu::HostBuffer to(4096, gpu::HostUse::portable);
    std::fill_n(to.data(), 4096, kUntouched);
    const gpu::Graph graph(stream, [&] {
        gpu::copy_async(device.data(), from.data(), 4096, stream);
        gpu::copy_async(to.data(), device.data(), 4096, stream);
    });
    stream.synchronize();
    EXPECT_EQ(to.data()[0], kUntouched) << "a graph that is only recorded does nothing";
    const gpu::ExecutableGraph executable(graph);
    for (const unsigned seed : {1u, 2u}) {
        const auto bytes = test::sequence(4096, seed);
        std::ranges::copy(bytes, from.data());
        executable.launch(stream);
        stream.synchronize();
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), to.data()));
    }
}

TEST_F(Seam, StreamOrderedMemoryHoldsBytesUntilItIsFreed) {
    if (!gpu::device(0).memory_pools) GTEST_SKIP() << "no memory pools here";
    const gpu::Stream stream(0);
    const gpu::HostBuffer to(kMiB, gpu::HostUse::portable);
    for (const unsigned char value : {1, 2, 3}) {
        std::byte* const data = gpu::allocate_async(kMiB, stream);
        gpu::fill_async(data, value, kMiB, stream);
        gpu::copy_async(to.data(), data, kMiB, stream);
        gpu::free_async(data, stream);
        stream.synchronize();
        EXPECT_EQ(to.data()[kMiB - 1], std::byte{value});
    }
}

struct Way {
    gpu::DeviceUse use;
    const char* name;
    bool gpu::Device::* has;
};

class SeamDeviceMemory : public Seam, public ::testing::WithParamInterface<Way> {
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
        gpu::fill_async(first.data(), 0x42, size, stream);
        gpu::copy_async(second.data(), first.data(), size, stream);
        EXPECT_EQ(read(stream, second.data(), size), std::vector(size, std::byte{0x42}));
        const auto bytes = test::sequence(size, 9);
        write(stream, second.data(), bytes);
        EXPECT_EQ(read(stream, second.data(), size), bytes);
        EXPECT_EQ(read(stream, first.data(), size), std::vector(size, std::byte{0x42}));
    }
}

// Before the two may reach each other and after, with memory that was there before.
TEST_P(SeamDeviceMemory, IsCopiedBetweenDevices) {
    if (gpu::device_count() < 2) GTEST_SKIP() << "one GPU";
    const gpu::Stream stream(0);
    const gpu::Stream far(1);
    const auto bytes = test::sequence(kMiB, 21);
    const auto round = [&](const gpu::DeviceBuffer& here, const gpu::DeviceBuffer& there) {
        write(stream, here.data(), bytes);
        gpu::fill_async(there.data(), 0, kMiB, far);
        far.synchronize();
        gpu::copy_peer_async(there.data(), 1, here.data(), 0, kMiB, stream);
        stream.synchronize();
        EXPECT_EQ(read(far, there.data(), kMiB), bytes);
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
    Ways, SeamDeviceMemory,
    ::testing::Values(Way{gpu::DeviceUse::plain, "plain", nullptr},
                      Way{gpu::DeviceUse::pool, "pool", &gpu::Device::memory_pools},
                      Way{gpu::DeviceUse::mapped, "mapped", &gpu::Device::vmm},
                      Way{gpu::DeviceUse::foreign, "foreign", &gpu::Device::ipc}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace waywiser
