// The seam's boxes: rows and planes at a pitch, between all kinds of memory.
#include <cstring>
#include <functional>

#include "conformance_seam.hpp"

namespace waywiser {
namespace {

// A box inside two arrays of different pitch; it is not at the start of either.
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
    // The expected destination after some planes of the box have arrived.
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

// Page-locked, pageable and device memory, with the same expected bytes on all sides.
class SeamBoxes : public Seam {
protected:
    using Copy = std::function<void(gpu::Pitched, gpu::Pitched, const gpu::Stream&)>;

    void check(std::size_t planes, const Copy& copy) const {
        const gpu::Stream stream(0);
        const gpu::DeviceBuffer device_from(0, Arrays::kSourceBytes);
        const gpu::DeviceBuffer device_to(0, Arrays::kBytes);
        const gpu::HostBuffer pinned_from(Arrays::kSourceBytes, gpu::HostUse::portable, 0);
        std::ranges::copy(arrays.source, pinned_from.data());
        write(stream, device_from.data(), arrays.source);
        auto pageable_from = arrays.source;
        for (std::byte* from : {device_from.data(), pinned_from.data(), pageable_from.data()}) {
            write(stream, device_to.data(), std::vector(Arrays::kBytes, kUntouched));
            copy(Arrays::to(device_to.data()), Arrays::from(from), stream);
            EXPECT_EQ(read(stream, device_to.data(), Arrays::kBytes), arrays.expected(planes));
        }
        const gpu::HostBuffer pinned_to(Arrays::kBytes, gpu::HostUse::portable, 0);
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
    const gpu::Stream other(last);
    const gpu::DeviceBuffer from(0, Arrays::kSourceBytes);
    const gpu::DeviceBuffer to(last, Arrays::kBytes);
    write(stream, from.data(), arrays.source);
    write(other, to.data(), std::vector(Arrays::kBytes, kUntouched));
    gpu::copy_box_peer_async(Arrays::to(to.data()), last, Arrays::from(from.data()), 0, Arrays::box,
                             stream);
    stream.synchronize();
    EXPECT_EQ(read(other, to.data(), Arrays::kBytes), arrays.expected(Arrays::box.depth));
}

}  // namespace
}  // namespace waywiser
