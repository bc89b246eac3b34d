// Memory in files: the limits of the places, and files that are never changed.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

#include "host/files.hpp"
#include "many_bytes.hpp"
#include "scratch_folder.hpp"
#include "units.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

using test::at_file;
using test::ScratchFolder;

const MemoryKind& kind(const std::string& name) { return *Memories::instance().find(name); }

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(FileMemory, IsReachedByADescriptorOnly) {
    const ScratchFolder folder;
    const Machine machine = folder.machine();
    for (const std::string& name : {std::string("scratch"), folder.user_file()}) {
        const auto buffer = kind("file").allocate(at_file("file", name), kMiB, machine);
        EXPECT_EQ(buffer->data(), nullptr);
        EXPECT_GE(buffer->file(), 0);
        EXPECT_EQ(buffer->bytes(), kMiB);
        EXPECT_EQ(buffer->placement().state, Placement::State::verified);
    }
    EXPECT_FALSE(kind("file").cpu_accessible());
    EXPECT_TRUE(kind("file").writable(at_file("file", "scratch"), machine));
    EXPECT_FALSE(kind("file").writable(at_file("file", folder.user_file()), machine));
}

TEST(FileMemory, TakesNoMoreThanThePlaceAllowsToAllTogether) {
    const ScratchFolder folder;
    const Machine machine = folder.machine();
    for (const char* name : {"file", "mapped"}) {
        const Memory memory = at_file(name, "scratch");
        EXPECT_EQ(kind(name).most_bytes(memory, machine), ScratchFolder::kScratchBytes);
        auto first = kind(name).allocate(memory, 24 * kMiB, machine);
        EXPECT_THROW((void)kind(name).allocate(memory, 9 * kMiB, machine), NotSupported);
        EXPECT_NO_THROW((void)kind(name).allocate(memory, 8 * kMiB, machine));
        first.reset();
        EXPECT_NO_THROW((void)kind(name).allocate(memory, 24 * kMiB, machine));
    }
}

TEST(FileMemory, OfAnExistingFileIsNoLargerThanTheFile) {
    const ScratchFolder folder;
    for (const char* name : {"file", "mapped"}) {
        const Memory memory = at_file(name, folder.user_file());
        try {
            (void)kind(name).allocate(memory, ScratchFolder::kFileBytes + 1, folder.machine());
            FAIL() << name;
        } catch (const NotSupported& error) {
            EXPECT_NE(std::string(error.what()).find(folder.user_file()), std::string::npos);
        }
    }
}

TEST(FileMemory, LeavesFilesOfOthersAsTheyAre) {
    const ScratchFolder folder;
    struct stat before{};
    ASSERT_EQ(stat(folder.user_file().c_str(), &before), 0);
    const std::string held = content(folder.user_file());
    for (const char* name : {"file", "mapped"}) {
        for (const char* state : {"warm", "cold"}) {
            for (const std::string& place : {folder.user_file(), std::string("scratch")}) {
                const auto buffer = kind(name).allocate(at_file(name, place, {{"state", state}}),
                                                        2 * kMiB, folder.machine());
                try {
                    buffer->restore(kMiB);
                } catch (const NotSupported& error) {
                    EXPECT_STREQ(state, "cold") << error.what();
                }
            }
        }
    }
    struct stat after{};
    ASSERT_EQ(stat(folder.user_file().c_str(), &after), 0);
    EXPECT_EQ(content(folder.user_file()), held);
    EXPECT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    EXPECT_EQ(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
    EXPECT_EQ(folder.names().size(), 1U);
}

TEST(MappedMemory, IsMemoryOfTheCpu) {
    const ScratchFolder folder;
    const auto buffer =
        kind("mapped").allocate(at_file("mapped", "scratch"), 3 * kMiB + 5, folder.machine());
    ASSERT_NE(buffer->data(), nullptr);
    std::memset(buffer->data(), 0x77, 3 * kMiB + 5);
    EXPECT_EQ(buffer->data()[3 * kMiB + 4], std::byte{0x77});
    buffer->restore(3 * kMiB + 5);
    EXPECT_EQ(buffer->data()[3 * kMiB + 4], std::byte{0x77});
    const auto theirs =
        kind("mapped").allocate(at_file("mapped", folder.user_file()), kMiB, folder.machine());
    const auto sent = test::sequence(kMiB, 11);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end() - 64, theirs->data()));
}

TEST(MappedMemory, ComesBackFromTheDiskAfterItWasCold) {
    const ScratchFolder folder;
    const Memory memory = at_file("mapped", "scratch", {{"state", "cold"}});
    EXPECT_TRUE(kind("mapped").used_up(memory));
    EXPECT_FALSE(kind("mapped").used_up(at_file("mapped", "scratch")));
    const auto buffer = kind("mapped").allocate(memory, kMiB, folder.machine());
    const auto sent = test::sequence(kMiB, 5);
    std::copy(sent.begin(), sent.end(), buffer->data());
    try {
        buffer->restore(kMiB);
    } catch (const NotSupported& error) {
        GTEST_SKIP() << folder.path() << ": " << error.what();
    }
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), buffer->data()));
}

// Idle buffers are kept, and a mapping keeps its pages in the page cache.
TEST(FileMemory, IsColdAlsoWhileAnotherBufferMapsTheFile) {
    const ScratchFolder folder;
    const Machine machine = folder.machine();
    const auto mapped =
        kind("mapped").allocate(at_file("mapped", folder.user_file()), kMiB, machine);
    const auto file = kind("file").allocate(at_file("file", folder.user_file()), kMiB, machine);
    try {
        host::evict(host::scratch_file(folder.path(), kMiB).get(), 0, kMiB);
    } catch (const NotSupported& error) {
        GTEST_SKIP() << folder.path() << ": " << error.what();
    }
    EXPECT_NO_THROW(file->restore(kMiB));
    const auto sent = test::sequence(kMiB, 11);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end() - 64, mapped->data()));
}

TEST(FileMemory, OfAFileSystemInMemoryIsNeverCold) {
    const Machine machine{{}, {}, {{"tmpfs", "/dev/shm", true, kMiB, "tmpfs", false}}};
    EXPECT_TRUE(kind("file").unsupported_reason(at_file("file", "tmpfs"), machine));
    EXPECT_FALSE(
        kind("file").unsupported_reason(at_file("file", "tmpfs", {{"state", "warm"}}), machine));
    EXPECT_TRUE(kind("mapped").unsupported_reason(at_file("mapped", "tmpfs", {{"state", "cold"}}),
                                                  machine));
    EXPECT_FALSE(kind("mapped").unsupported_reason(at_file("mapped", "tmpfs"), machine));
}

}  // namespace
}  // namespace waywiser
