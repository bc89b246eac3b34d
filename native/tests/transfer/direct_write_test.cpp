// Writes that reach the disk: with direct I/O for whole blocks, whatever the offsets, and cut
// files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "host/files.hpp"
#include "many_bytes.hpp"
#include "transfer/file_end.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

using test::sequence;

constexpr std::size_t kBlock = host::kDiskBlock;

class DirectWrites : public test::OnFake {
protected:
    DirectWrites() : file_(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {}

    [[nodiscard]] int file() const { return file_.get(); }
    [[nodiscard]] std::vector<std::byte> content() const {
        std::vector<std::byte> all(host::file_bytes(file()));
        host::read_fully(file(), all.data(), all.size(), 0);
        return all;
    }
    // Bytes at an address with the offset `skew` in a block.
    struct Placed {
        std::unique_ptr<std::byte, decltype(&std::free)> memory;
        std::byte* data;
    };
    static Placed placed(const std::vector<std::byte>& bytes, std::size_t skew) {
        const std::size_t room = (bytes.size() + skew + kBlock) / kBlock * kBlock;
        Placed made{{static_cast<std::byte*>(std::aligned_alloc(kBlock, room)), &std::free}, {}};
        made.data = made.memory.get() + skew;
        test::copy_bytes(made.data, bytes.data(), bytes.size());
        return made;
    }

private:
    host::Descriptor file_;
};

TEST_F(DirectWrites, HaveTheBytesAtAnyOffsetFromAnyMemory) {
    Context context({.threads = 2, .pinned_bytes = 8 * kMiB});
    const gpu::Stream stream(0);
    constexpr std::size_t kLong = 3 * kMiB + 77;
    const gpu::DeviceBuffer device(0, kLong);
    for (const std::size_t bytes : {std::size_t{1}, kBlock - 1, kBlock, 3 * kBlock + 5, kLong}) {
        for (const std::size_t offset :
             {std::size_t{0}, std::size_t{1}, kBlock - 1, kBlock, 2 * kBlock + 8}) {
            const auto sent = sequence(bytes);
            const Placed aligned = placed(sent, offset % kBlock);
            const Placed skewed = placed(sent, (offset + 64) % kBlock);
            test::copy_bytes(device.data(), sent.data(), bytes);
            for (const std::byte* from : {aligned.data, skewed.data, device.data()}) {
                std::vector<std::byte> expected(offset + bytes + kBlock, std::byte{0xEE});
                ASSERT_EQ(ftruncate(file(), 0), 0);
                host::write_fully(file(), expected.data(), expected.size(), 0);
                EXPECT_EQ(context.write(file(), offset, from, bytes, stream.handle(),
                                        {.truncate = false, .sync = true}),
                          bytes);
                test::copy_bytes(expected.data() + offset, sent.data(), bytes);
                ASSERT_TRUE(test::same_bytes(content(), expected)) << bytes << " at " << offset;
                context
                    .write_async(file(), offset, from, bytes, stream.handle(),
                                 {.truncate = true, .sync = true})
                    .result();
                expected.resize(offset + bytes);
                ASSERT_TRUE(test::same_bytes(content(), expected)) << bytes << " at " << offset;
            }
        }
    }
}

TEST_F(DirectWrites, LeaveTheFileAsItIsBehindThem) {
    Context context({.threads = 2});
    const auto sent = sequence(kMiB);
    context.write(file(), 0, sent.data(), sent.size());
    context.write(file(), 10, sent.data(), 5);
    EXPECT_EQ(content().size(), sent.size());
    context.write(file(), 10, sent.data(), 5, {}, {.truncate = true});
    EXPECT_EQ(content().size(), 15U);
    context.write(file(), 7, nullptr, 0, {}, {.truncate = true, .sync = true});
    EXPECT_EQ(content().size(), 7U);
    context.write_async(file(), 3, nullptr, 0, {}, {.truncate = true}).result();
    EXPECT_EQ(content().size(), 3U);
    context.write(file(), 1, nullptr, 0);
    EXPECT_EQ(content().size(), 3U);
}

TEST_F(DirectWrites, BypassThePageCache) {
    const transfer::FileEnd end(file(), transfer::Writing::direct);
    if (!end.writes_directly()) GTEST_SKIP() << "/tmp does not let files be written with O_DIRECT";
    Context context({.threads = 2});
    const auto sent = sequence(8 * kMiB + 100);
    const Placed skewed = placed(sent, 128);
    context.write(file(), 0, skewed.data, sent.size(), {}, {.truncate = true, .sync = true});
    const auto cached = host::cached_bytes(file(), 0, sent.size());
    if (!cached) GTEST_SKIP() << "the system does not say what of a file in /tmp is cached";
    EXPECT_LT(*cached, kMiB);
    EXPECT_TRUE(test::same_bytes(content(), sent));
}

// A descriptor with O_DIRECT takes whole blocks only: the library writes and reads the rest by
// another one.
TEST_F(DirectWrites, TakeADescriptorThatIsOpenForDirectIo) {
    const std::string own = "/proc/self/fd/" + std::to_string(file());
    const host::Descriptor direct(open(own.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    if (direct.get() < 0) GTEST_SKIP() << "/tmp does not let files be opened with O_DIRECT";
    Context context({.threads = 2});
    const auto sent = sequence(2 * kMiB + 3);
    const Placed skewed = placed(sent, 8);
    EXPECT_EQ(context.write(direct.get(), 5, skewed.data, sent.size()), sent.size());
    std::vector<std::byte> back(sent.size());
    EXPECT_EQ(context.read(direct.get(), 5, back.data(), back.size()), back.size());
    EXPECT_TRUE(test::same_bytes(back, sent));
    EXPECT_EQ(content().size(), sent.size() + 5);
}

TEST_F(DirectWrites, RejectFlagsThatTheLibraryDoesNotKnow) {
    Context context;
    const std::byte data{};
    waywiser_context* made = nullptr;
    ASSERT_EQ(waywiser_context_create(nullptr, &made), WAYWISER_OK);
    EXPECT_EQ(waywiser_write(made, file(), 0, &data, 1, 4, WAYWISER_NO_STREAM, nullptr, nullptr),
              WAYWISER_INVALID);
    EXPECT_EQ(content().size(), 0U);
    waywiser_context_release(made);
}

}  // namespace
}  // namespace waywiser
