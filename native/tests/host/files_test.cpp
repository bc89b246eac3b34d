#include "host/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <optional>

#include "many_bytes.hpp"
#include "scratch_folder.hpp"

namespace waywiser::host {
namespace {

using test::ScratchFolder;

TEST(ScratchFiles, HaveNoNameThatCouldStay) {
    const ScratchFolder folder;
    const auto before = folder.names();
    const Descriptor file = scratch_file(folder.path(), 1 << 20);
    EXPECT_EQ(folder.names(), before);
    EXPECT_EQ(file_bytes(file.get()), 1U << 20);
}

TEST(ScratchFiles, LeaveNothingBehindAProcessThatIsKilled) {
    const ScratchFolder folder;
    const auto before = folder.names();
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        const Descriptor file = scratch_file(folder.path(), 1 << 20);
        if (write(ready[1], "x", 1) == 1) pause();
        _exit(1);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
    EXPECT_EQ(folder.names(), before);
}

TEST(ScratchFiles, LeaveSpaceToOthers) {
    const ScratchFolder folder;
    const std::size_t available = free_for_scratch(folder.path());
    try {
        scratch_file(folder.path(), available + (std::size_t{1} << 30));
        FAIL() << "the disk would have been filled";
    } catch (const NotSupported& error) {
        EXPECT_NE(std::string(error.what()).find("leave others too little"), std::string::npos);
    }
}

TEST(ScratchFiles, AreRejectedWhereNobodyMayWrite) {
    EXPECT_THROW(scratch_file("/proc/self", 4096), NotSupported);
    EXPECT_THROW(scratch_file("/nowhere/at/all", 4096), NotSupported);
}

TEST(ReadableFiles, AreOrdinaryOnes) {
    const ScratchFolder folder;
    const std::string pipe_name = folder.path() + "/pipe";
    ASSERT_EQ(mkfifo(pipe_name.c_str(), 0600), 0);
    EXPECT_EQ(file_bytes(readable_file(folder.user_file()).get()), ScratchFolder::kFileBytes);
    for (const std::string& path :
         {pipe_name, folder.path(), std::string("/dev/null"), folder.path() + "/missing"}) {
        EXPECT_THROW(readable_file(path), NotSupported) << path;
    }
}

TEST(ReadableFiles, CannotBeWritten) {
    const ScratchFolder folder;
    const Descriptor file = readable_file(folder.user_file());
    const std::byte one{};
    EXPECT_THROW(write_fully(file.get(), &one, 1, 0), NotSupported);
}

TEST(Reading, BeyondTheEndIsAnError) {
    const ScratchFolder folder;
    const Descriptor file = readable_file(folder.user_file());
    std::byte bytes[64];
    EXPECT_THROW(read_fully(file.get(), bytes, sizeof bytes, ScratchFolder::kFileBytes - 8),
                 NotSupported);
}

// The kernel may drop a page again at any time: repeats to warm a range until all of it is cached.
std::optional<std::size_t> cached_after_warming(int file, std::size_t bytes) {
    std::optional<std::size_t> cached;
    for (int attempt = 0; attempt < 10; ++attempt) {
        warm(file, 0, bytes);
        cached = cached_bytes(file, 0, bytes);
        if (cached == bytes) break;
    }
    return cached;
}

TEST(PageCache, IsWarmedAndEvicted) {
    constexpr std::size_t kBytes = 1 << 20;
    const ScratchFolder folder;
    const Descriptor file = scratch_file(folder.path(), kBytes);
    const auto content = test::sequence(kBytes, 3);
    write_fully(file.get(), content.data(), kBytes, 0);
    ASSERT_EQ(cached_after_warming(file.get(), kBytes), kBytes);
    try {
        evict(file.get(), 0, kBytes);
    } catch (const NotSupported& error) {
        GTEST_SKIP() << folder.path() << ": " << error.what();
    }
    EXPECT_LE(*cached_bytes(file.get(), 0, kBytes), kBytes / 50);
    EXPECT_EQ(cached_after_warming(file.get(), kBytes), kBytes);
}

TEST(PageCache, OfAFileSystemInMemoryCannotBeEvicted) {
    if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "/dev/shm cannot be written";
    constexpr std::size_t kBytes = 1 << 20;
    const Descriptor file = scratch_file("/dev/shm", kBytes);
    write_fully(file.get(), test::sequence(kBytes, 3).data(), kBytes, 0);
    EXPECT_THROW(evict(file.get(), 0, kBytes), NotSupported);
}

}  // namespace
}  // namespace waywiser::host
