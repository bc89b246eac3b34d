// Common code of tests of the seam alone: a GPU, and copies to and from its memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "conformance.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "units.hpp"

namespace waywiser {

inline constexpr std::byte kUntouched{0xEE};

class Seam : public ::testing::Test {
protected:
    void SetUp() override {
        if (gpu::device_count() == 0) GTEST_SKIP() << gpu::unavailable_reason();
    }
};

inline std::vector<std::byte> read(const gpu::Stream& stream, const std::byte* data,
                                   std::size_t bytes) {
    const gpu::HostBuffer host(bytes, gpu::HostUse::portable, 0);
    gpu::copy_async(host.data(), data, bytes, stream);
    stream.synchronize();
    return {host.data(), host.data() + bytes};
}

inline void write(const gpu::Stream& stream, std::byte* data, const std::vector<std::byte>& bytes) {
    const gpu::HostBuffer host(bytes.size(), gpu::HostUse::portable, 0);
    test::copy_bytes(host.data(), bytes.data(), bytes.size());
    gpu::copy_async(data, host.data(), bytes.size(), stream);
    stream.synchronize();
}

}  // namespace waywiser
