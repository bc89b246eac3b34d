#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kPiece = 64;

// Pieces of page-locked memory, each with its own place on the device.
class FakePieces : public test::OnFake {
protected:
    explicit FakePieces(std::size_t count = 200)
        : device(0, count * kPiece), host(count * kPiece, gpu::HostUse::portable, 0) {
        for (std::size_t i = 0; i < count; ++i) {
            to.push_back(device.data() + i * kPiece);
            from.push_back(host.data() + i * kPiece);
        }
    }
    template <class Work>
    double seconds(const Work& work) {
        gpu::Event start(0);
        gpu::Event stop(0);
        gpu::Gate gate{0};
        gate.close(stream);
        start.record(stream);
        work();
        stop.record(stream);
        gate.open();
        stop.synchronize();
        return gpu::seconds_between(start, stop);
    }
    [[nodiscard]] gpu::Pitched device_box(std::size_t pitch = kPiece) const {
        return {device.data(), pitch, 4};
    }
    [[nodiscard]] gpu::Pitched host_box(std::size_t pitch = kPiece) const {
        return {host.data(), pitch, 4};
    }

    gpu::Stream stream{0};
    gpu::DeviceBuffer device;
    gpu::HostBuffer host;
    std::vector<void*> to;
    std::vector<const void*> from;
};

TEST_F(FakePieces, ABatchPaysLatencyOnceAndALoopEachTime) {
    fake::configure("latency=200;piece=1");
    const double batch = seconds([&] { gpu::copy_batch_async(to, from, kPiece, true, stream); });
    const double loop = seconds([&] {
        for (std::size_t i = 0; i < to.size(); ++i) gpu::copy_async(to[i], from[i], kPiece, stream);
    });
    EXPECT_GE(batch, 200e-6 + 200 * 1e-6);
    EXPECT_GE(loop, 200 * 200e-6);
    EXPECT_LT(batch, loop / 2);
    EXPECT_EQ(fake::counts().copies, 201u);
}

TEST_F(FakePieces, AreStruckAsOneCopy) {
    std::fill_n(host.data(), host.bytes(), std::byte{8});
    std::fill_n(device.data(), device.bytes(), std::byte{0});
    fake::configure("drop=copy@1;flip=copy@2;fail=copy@3;only_bytes=12800");
    gpu::copy_batch_async(to, from, kPiece, true, stream);
    stream.synchronize();
    EXPECT_EQ(device.data()[0], std::byte{0});
    gpu::copy_batch_async(to, from, kPiece, true, stream);
    stream.synchronize();
    EXPECT_EQ(device.data()[0], std::byte{8});
    EXPECT_EQ(device.data()[device.bytes() - 1], std::byte{9});
    EXPECT_THROW(gpu::copy_box_async(device_box(), host_box(), {kPiece, 4, 50}, stream),
                 gpu::Error);
    gpu::copy_rows_async(device_box(), host_box(), kPiece, 4, stream);  // of other bytes
    EXPECT_EQ(fake::counts().copies, 3u);
}

TEST_F(FakePieces, OfPageableMemoryBlockBehindAGate) {
    std::vector<std::byte> pageable(2 * kPiece);
    const gpu::Pitched pages{pageable.data(), kPiece, 2};
    for (const auto& copy : std::vector<std::function<void()>>{
             [&] { gpu::copy_rows_async(device_box(), pages, kPiece, 2, stream); },
             [&] { gpu::copy_box_async(pages, device_box(), {kPiece, 2, 1}, stream); },
             [&] {
                 gpu::copy_batch_async({to[0], to[1]}, {from[0], pageable.data()}, kPiece, true,
                                       stream);
             }}) {
        gpu::Gate gate{0};
        gate.close(stream);
        test::AsyncCall call(copy);
        EXPECT_TRUE(call.blocks());
        gate.open();
        EXPECT_TRUE(call.returns());
    }
    gpu::Gate gate{0};
    gate.close(stream);
    EXPECT_TRUE(test::AsyncCall([&] {
                    gpu::copy_rows_async(device_box(), host_box(), kPiece, 2, stream);
                }).returns());
    gate.open();
    stream.synchronize();
}

TEST_F(FakePieces, OutsideOfTheirArraysAreRejected) {
    EXPECT_THROW(gpu::copy_rows_async(device_box(63), host_box(), kPiece, 2, stream), gpu::Error);
    EXPECT_THROW(gpu::copy_box_async(device_box(), host_box(), {kPiece, 5, 2}, stream), gpu::Error);
    EXPECT_THROW(gpu::copy_box_async(device_box(), host_box(), {kPiece, 4, 51}, stream),
                 gpu::Error);
    EXPECT_THROW(gpu::copy_box_peer_async(device_box(), 1, device_box(), 0, {8, 4, 1}, stream),
                 gpu::Error);
    EXPECT_THROW(gpu::copy_batch_async(to, {from[0]}, kPiece, true, stream), gpu::Error);
    EXPECT_THROW(gpu::copy_batch_async(to, from, kPiece + 1, true, stream), gpu::Error);
    EXPECT_THROW(gpu::copy_batch_async({}, {}, kPiece, true, stream), gpu::Error);
    gpu::copy_box_async(device_box(), host_box(), {kPiece, 4, 50}, stream);
    stream.synchronize();
}

TEST_F(FakePieces, BatchesCanBeMissing) {
    EXPECT_TRUE(gpu::has_batch());
    fake::configure("without=batch");
    EXPECT_FALSE(gpu::has_batch());
    EXPECT_THROW(gpu::copy_batch_async(to, from, kPiece, true, stream), gpu::Error);
}

}  // namespace
}  // namespace waywiser
