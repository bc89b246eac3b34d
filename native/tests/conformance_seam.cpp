// The seam alone, the same tests on the fake and on a real GPU: every call that moves or holds
// bytes handles the right bytes and no others.
#include "conformance_seam.hpp"

#include <thread>

#include "host/clock.hpp"
#include "measure/who_copies.hpp"

namespace waywiser {
namespace {

TEST_F(Seam, PrefetchingThereAndBackKeepsTheBytes) {
    const gpu::Device device = gpu::device(0);
    if (!device.concurrent_managed) GTEST_SKIP() << "managed memory does not move by itself here";
    const gpu::Stream stream(0);
    const gpu::ManagedBuffer managed(3 * kMiB + 5, 0);
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
    const gpu::ManagedBuffer managed(kMiB, 0);
    const auto bytes = test::sequence(kMiB, 3);
    std::ranges::copy(bytes, managed.data());
    const int node = test::this_machine().numa.front().index;
    gpu::advise(managed.data(), kMiB, gpu::Advice::read_mostly, {.device = 0});
    gpu::advise(managed.data(), kMiB, gpu::Advice::accessed_by, {.node = node});
    gpu::prefetch_async(managed.data(), kMiB, {.device = 0}, stream);
    gpu::prefetch_async(managed.data(), kMiB, {.node = node}, stream);
    EXPECT_EQ(read(stream, managed.data(), kMiB), bytes);
}

TEST_F(Seam, BatchesBringTheRightBytesAndNoOthers) {
    if (!gpu::has_batch()) GTEST_SKIP() << "no batched copies here";
    constexpr std::size_t kPiece = 1237, kCount = 37, kApart = 2000;
    const gpu::Stream stream(0);
    const gpu::DeviceBuffer device(0, kCount * kApart);
    const gpu::HostBuffer pinned(kCount * kApart, gpu::HostUse::portable, 0);
    const auto bytes = test::sequence(kCount * kApart, 5);
    for (const bool equal : {true, false}) {
        const bool stream_order = equal;
        std::ranges::copy(bytes, pinned.data());
        write(stream, device.data(), std::vector(kCount * kApart, kUntouched));
        std::vector<void*> to;
        std::vector<const void*> from;
        std::vector<std::size_t> sizes;
        std::vector<std::byte> expected(kCount * kApart, kUntouched);
        for (std::size_t i = 0; i < kCount; ++i) {
            const std::size_t at = i * kApart + 3;
            const std::size_t of = (kCount - 1 - i) * kApart + 1;
            to.push_back(device.data() + at);
            from.push_back(pinned.data() + of);
            sizes.push_back(equal ? kPiece : kPiece - 30 * i);
            std::copy_n(bytes.data() + of, sizes.back(), expected.data() + at);
        }
        if (equal) {
            gpu::copy_batch_async(to, from, kPiece, stream_order, stream);
        } else {
            gpu::copy_batch_async(to, from, sizes, stream_order, stream);
        }
        EXPECT_EQ(read(stream, device.data(), expected.size()), expected);
    }
}

TEST_F(Seam, GraphsCopyAtEachLaunchWhatIsThereThen) {
    const gpu::Stream stream(0);
    const gpu::DeviceBuffer device(0, 4096);
    const gpu::HostBuffer from(4096, gpu::HostUse::portable, 0);
    const gpu::HostBuffer to(4096, gpu::HostUse::portable, 0);
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
    const gpu::HostBuffer to(kMiB, gpu::HostUse::portable, 0);
    for (const unsigned char value : {1, 2, 3}) {
        std::byte* const data = gpu::allocate_async(kMiB, stream);
        gpu::fill_async(data, value, kMiB, stream);
        gpu::copy_async(to.data(), data, kMiB, stream);
        gpu::free_async(data, stream);
        stream.synchronize();
        EXPECT_EQ(to.data()[kMiB - 1], std::byte{value});
    }
}

// Until the condition holds, or for so many seconds.
template <class Condition>
bool comes_true(Condition condition, double seconds) {
    const double end = host::now() + seconds;
    while (!condition() && host::now() < end) std::this_thread::yield();
    return condition();
}

TEST_F(Seam, AnOccupationLeavesNoPlaceForAKernelUntilItIsReleased) {
    gpu::Occupation occupation(0);
    EXPECT_FALSE(occupation.complete());
    const gpu::Stream stream(0);
    measure::launch_short_kernel(stream);
    stream.synchronize();
    for (int n = 0; n < 3; ++n) {
        occupation.start(5);
        if (!comes_true([&] { return occupation.complete(); }, 2)) {
            GTEST_SKIP() << "other work uses multiprocessors";
        }
        measure::launch_short_kernel(stream);
        EXPECT_FALSE(comes_true([&] { return stream.done(); }, 5e-3));
        EXPECT_TRUE(occupation.complete());
        occupation.release();
        EXPECT_TRUE(comes_true([&] { return stream.done(); }, 2));
        EXPECT_FALSE(occupation.complete());
    }
}

TEST_F(Seam, AnOccupationEndsByItself) {
    gpu::Occupation occupation(0);
    occupation.start(0.3);
    EXPECT_TRUE(comes_true([&] { return occupation.complete(); }, 2));
    EXPECT_TRUE(comes_true([&] { return !occupation.complete(); }, 2));
    occupation.start(0);
    gpu::synchronize_device(0);
    EXPECT_FALSE(occupation.complete());
}

}  // namespace
}  // namespace waywiser
