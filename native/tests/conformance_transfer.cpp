// The calls of programs that move data, over any implementation of the seam: copies and lists
// between all kinds of memory, byte by byte.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "conformance_seam.hpp"
#include "many_bytes.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kBufferBytes = 2 * kMiB;

// A buffer of each kind of memory, written and read through pinned memory.
class TransferCalls : public Seam {
protected:
    static constexpr std::size_t kKinds = 4;
    static constexpr std::array<const char*, kKinds> kNames{"device", "other device", "pinned",
                                                            "pageable"};

    void SetUp() override {
        Seam::SetUp();
        if (IsSkipped()) return;
        const int last = gpu::device_count() > 1 ? 1 : 0;
        devices_.emplace_back(0, kBufferBytes);
        devices_.emplace_back(last, kBufferBytes);
        pinned_.emplace_back(kBufferBytes, gpu::HostUse::portable, 0);
        pageable_.resize(kBufferBytes);
    }
    [[nodiscard]] std::byte* of(std::size_t kind) {
        if (kind < 2) return devices_[kind].data();
        return kind == 2 ? pinned_.front().data() : pageable_.data();
    }
    void put(std::size_t kind, std::span<const std::byte> bytes) {
        gpu::copy_sync(of(kind), bytes.data(), bytes.size(), 0);
    }
    [[nodiscard]] std::vector<std::byte> content(std::size_t kind) {
        std::vector<std::byte> bytes(kBufferBytes);
        gpu::copy_sync(bytes.data(), of(kind), kBufferBytes, 0);
        return bytes;
    }

private:
    std::vector<gpu::DeviceBuffer> devices_;
    std::vector<gpu::HostBuffer> pinned_;
    std::vector<std::byte> pageable_;
};

std::vector<std::int64_t> shuffled(std::size_t count, std::mt19937& random) {
    std::vector<std::int64_t> order(count);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::shuffle(order, random);
    return order;
}

TEST_F(TransferCalls, MoveBlocksBetweenAllKindsOfMemory) {
    std::mt19937 random(7);
    const auto sent = test::sequence(kBufferBytes, 5);
    const std::vector<std::byte> blank(kBufferBytes, std::byte{0x5A});
    const gpu::Stream stream(0);
    Context context({.pinned_bytes = 16 * kMiB});
    for (std::size_t to = 0; to < kKinds; ++to) {
        for (std::size_t from = 0; from < kKinds; ++from) {
            if (to == from) continue;
            // Blocks of 4 KiB, small blocks that need byte-wise accesses, and long ones.
            for (const std::size_t block : {4 * kKiB, std::size_t{24}, 3 * kKiB + 1, 300 * kKiB}) {
                const std::size_t stride = block + (block % 16 == 0 ? 16 : 8);
                const std::size_t blocks = kBufferBytes / stride;
                const auto count = std::min<std::size_t>(blocks, 3000);
                auto to_index = shuffled(blocks, random);
                auto from_index = shuffled(blocks, random);
                to_index.resize(count);
                from_index.resize(count);
                put(from, sent);
                put(to, blank);
                const BlockArray<void> out{of(to), stride, blocks};
                const BlockArray<const void> in{of(from), stride, blocks};
                if (block % 3 == 0) {
                    context.copy_blocks(out, in, block, to_index, from_index, stream.handle());
                } else {
                    auto transfer = context.copy_blocks_async(out, in, block, to_index, from_index,
                                                              stream.handle());
                    EXPECT_EQ(transfer.result(), count * block);
                }
                stream.synchronize();
                auto expected = blank;
                for (std::size_t i = 0; i < count; ++i) {
                    test::copy_bytes(
                        expected.data() + static_cast<std::size_t>(to_index[i]) * stride,
                        sent.data() + static_cast<std::size_t>(from_index[i]) * stride, block);
                }
                ASSERT_TRUE(test::same_bytes(content(to), expected))
                    << "blocks of " << block << " from " << kNames[from] << " to " << kNames[to];
            }
        }
    }
}

TEST_F(TransferCalls, CopyBetweenAllKindsOfMemory) {
    const auto sent = test::sequence(kBufferBytes, 6);
    const gpu::Stream stream(0);
    Context context({.pinned_bytes = 16 * kMiB});
    for (std::size_t to = 0; to < kKinds; ++to) {
        for (std::size_t from = 0; from < kKinds; ++from) {
            if (to == from) continue;
            for (const std::size_t bytes : {std::size_t{1}, 4 * kKiB, kBufferBytes - 3}) {
                put(from, sent);
                put(to, std::vector<std::byte>(kBufferBytes));
                context.copy(of(to) + 1, of(from) + 2, bytes, stream.handle());
                stream.synchronize();
                const auto arrived = content(to);
                ASSERT_TRUE(test::same_bytes(arrived.data() + 1, sent.data() + 2, bytes))
                    << bytes << " bytes from " << kNames[from] << " to " << kNames[to];
                ASSERT_EQ(arrived[0], std::byte{0});
                if (bytes + 1 < kBufferBytes) {
                    ASSERT_EQ(arrived[bytes + 1], std::byte{0});
                }
            }
        }
    }
}

}  // namespace
}  // namespace waywiser
