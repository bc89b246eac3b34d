// Files at their limits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "host/files.hpp"
#include "many_bytes.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

class FileCalls : public test::OnFake {
protected:
    FileCalls() : file_(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {}
    ~FileCalls() override { close(file_); }

public:
    FileCalls(const FileCalls&) = delete;
    FileCalls& operator=(const FileCalls&) = delete;

protected:
    int file_;
};

TEST_F(FileCalls, NameADescriptorThatIsNotOpen) {
    Context context;
    std::vector<std::byte> data(100);
    constexpr int kClosed = 9999;
    const auto says = [](const char* said, auto call) {
        try {
            call();
            ADD_FAILURE() << said;
        } catch (const TransferError& error) {
            EXPECT_EQ(error.status(), WAYWISER_IO);
            EXPECT_EQ(error.error_number(), EBADF);
            EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
        }
    };
    says("descriptor 9999, which is not open for reading",
         [&] { context.read(kClosed, 0, data.data(), data.size()); });
    says("descriptor 9999, which is not open for writing",
         [&] { context.write(kClosed, 0, data.data(), data.size()); });
}

TEST_F(FileCalls, RejectOffsetsThatNoFileHas) {
    Context context;
    std::vector<std::byte> data(4 * kMiB, std::byte{1});
    const std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    for (const std::uint64_t offset :
         {most, most - kMiB, most + 1, std::numeric_limits<std::uint64_t>::max() - kMiB}) {
        const auto expect_rejected = [&](auto call) {
            try {
                call();
                ADD_FAILURE() << offset;
            } catch (const TransferError& error) {
                EXPECT_EQ(error.status(), WAYWISER_INVALID) << error.what();
                EXPECT_NE(std::string(error.what()).find("2^63"), std::string::npos);
            }
        };
        expect_rejected([&] { context.write(file_, offset, data.data(), data.size()); });
        expect_rejected([&] { context.read(file_, offset, data.data(), data.size()); });
        expect_rejected([&] {
            const auto transfer = context.write_async(file_, offset, data.data(), data.size());
            transfer.result();
        });
    }
    EXPECT_EQ(lseek(file_, 0, SEEK_END), 0) << "something was written";
}

TEST_F(FileCalls, ReportTheBytesThatWereMoved) {
    constexpr std::size_t kMost = 2 * kMiB;
    const std::vector<std::byte> data(8 * kMiB, std::byte{1});
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small{.rlim_cur = kMost, .rlim_max = before.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_DFL);  // it would end the program
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    Context context({.threads = 1});
    try {
        context.write(file_, 0, data.data(), data.size());
        ADD_FAILURE() << "the file may have 2 MiB only";
    } catch (const TransferError& error) {
        EXPECT_EQ(error.error_number(), EFBIG);
        EXPECT_GT(error.moved(), 0U);
        EXPECT_LE(error.moved(), kMost);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
}

TEST_F(FileCalls, AreNotWaitedForByAStreamThatIsCaptured) {
    Context context;
    const gpu::Stream stream(0);
    const gpu::DeviceBuffer device(0, kMiB);
    const std::vector<std::byte> data(kMiB, std::byte{1});
    ASSERT_EQ(pwrite(file_, data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
    const auto transfer = context.read_async(file_, 0, device.data(), kMiB, stream.handle());
    const gpu::Stream other(0);
    const gpu::Graph graph(other, [&] {
        try {
            transfer.wait(other.handle());
            ADD_FAILURE();
        } catch (const TransferError& error) {
            EXPECT_EQ(error.status(), WAYWISER_UNSUPPORTED) << error.what();
        }
    });
    EXPECT_EQ(transfer.result(), kMiB);
}

TEST_F(FileCalls, WorkInPlainMode) {
    Context context({.plain = true});
    std::vector<std::byte> sent(3 * kMiB + 5, std::byte{7});
    const gpu::DeviceBuffer device(0, sent.size());
    const gpu::Stream stream(0);
    context.write(file_, 11, sent.data(), sent.size());
    EXPECT_EQ(context.read(file_, 11, device.data(), sent.size(), stream.handle()), sent.size());
    stream.synchronize();
    EXPECT_TRUE(test::same_bytes(device.data(), sent.data(), sent.size()));
}

// Threads that sleep would come too late to help.
TEST_F(FileCalls, ReadFewCachedBytesWithTheCallingThread) {
    constexpr std::size_t kBytes = 4 * kMiB + 100;
    std::vector<std::byte> data(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) data[i] = static_cast<std::byte>(i * 5 + (i >> 12U));
    ASSERT_EQ(pwrite(file_, data.data(), kBytes, 33), static_cast<ssize_t>(kBytes));
    const std::unique_ptr<std::byte, decltype(&std::free)> got(
        static_cast<std::byte*>(std::aligned_alloc(4096, kBytes + 4096 - kBytes % 4096)),
        &std::free);
    Context context({.threads = 2});
    const auto reads_all = [&] {
        std::memset(got.get(), 0, kBytes);
        EXPECT_EQ(context.read(file_, 33, got.get(), kBytes, StreamRef::none()), kBytes);
        EXPECT_TRUE(test::same_bytes(got.get(), data.data(), kBytes));
    };
    reads_all();
    EXPECT_EQ(context.usage().threads, 0);

    ASSERT_EQ(fsync(file_), 0);
    ASSERT_EQ(posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED), 0);
    const bool dropped = host::cached_bytes(file_, 0, kBytes) == 0;
    reads_all();
    if (!dropped) GTEST_SKIP() << "/tmp stays in the page cache";
    EXPECT_GT(context.usage().threads, 0) << "several threads read from the disk";
}

// A test for cached bytes must not read them: the disk would deliver them twice.
TEST_F(FileCalls, ReadWhatIsNotCachedFromTheDiskOnce) {
    constexpr std::size_t kBytes = 32 * kMiB;
    const host::Descriptor direct(
        open(("/proc/self/fd/" + std::to_string(file_)).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    if (direct.get() < 0) GTEST_SKIP() << "/tmp does not let files be opened with O_DIRECT";
    std::vector<std::byte> data(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) data[i] = static_cast<std::byte>(i * 7 + (i >> 12U));
    Context context({.threads = 2});
    context.write(file_, 0, data.data(), kBytes);
    const std::unique_ptr<std::byte, decltype(&std::free)> got(
        static_cast<std::byte*>(std::aligned_alloc(4096, kBytes)), &std::free);

    const auto cached = host::cached_bytes(file_, 0, kBytes);
    if (!cached) GTEST_SKIP() << "the system does not say what of a file in /tmp is cached";
    EXPECT_EQ(context.read(file_, 0, got.get(), kBytes), kBytes);
    EXPECT_TRUE(test::same_bytes(got.get(), data.data(), kBytes));
    EXPECT_EQ(host::cached_bytes(file_, 0, kBytes), cached) << "bytes that were cached stay so";

    ASSERT_EQ(fsync(file_), 0);
    ASSERT_EQ(posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED), 0);
    if (host::cached_bytes(file_, 0, kBytes) != 0) GTEST_SKIP() << "/tmp stays in the page cache";
    std::memset(got.get(), 0, kBytes);
    EXPECT_EQ(context.read(file_, 0, got.get(), kBytes), kBytes);
    EXPECT_TRUE(test::same_bytes(got.get(), data.data(), kBytes));
    EXPECT_LT(*host::cached_bytes(file_, 0, kBytes), kBytes / 10);
}

}  // namespace
}  // namespace waywiser
