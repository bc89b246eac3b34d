#include "host/streaming.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace waywiser::host {
namespace {

TEST(CopyStreaming, CopiesAnyBytesToAnywhere) {
    constexpr std::size_t kGuard = 64;
    for (const std::size_t bytes : {0, 1, 7, 63, 64, 65, 127, 128, 4095, 4096, 4161}) {
        for (const std::size_t to : {0, 1, 31, 63}) {
            for (const std::size_t from : {0, 1, 17}) {
                std::vector<unsigned char> source(bytes + 2 * kGuard);
                for (std::size_t i = 0; i < source.size(); ++i) {
                    source[i] = static_cast<unsigned char>(i * 13 + 1);
                }
                std::vector<unsigned char> destination(bytes + 3 * kGuard, 0);
                copy_streaming(destination.data() + kGuard + to, source.data() + from, bytes);
                for (std::size_t i = 0; i < destination.size(); ++i) {
                    const bool inside = i >= kGuard + to && i < kGuard + to + bytes;
                    ASSERT_EQ(destination[i], inside ? source[i - kGuard - to + from] : 0)
                        << bytes << " bytes from " << from << " to " << to << " at " << i;
                }
            }
        }
    }
}

}  // namespace
}  // namespace waywiser::host
