// Limits of a process, from files in the kernel's formats.
#include "transfer/limits.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "scratch_folder.hpp"

namespace waywiser::transfer {
namespace {

namespace fs = std::filesystem;

class Limits : public ::testing::Test {
protected:
    void put(const fs::path& file, const std::string& text) const {
        fs::create_directories((folder() / file).parent_path());
        std::ofstream(folder() / file) << text;
    }
    [[nodiscard]] fs::path folder() const { return folder_.path(); }

private:
    test::ScratchFolder folder_;
};

TEST_F(Limits, QuotasOfAllAncestorsCount) {
    put("cpu.max", "max 100000\n");
    put("pod/cpu.max", "150000 100000\n");
    put("pod/task/cpu.max", "800000 100000\n");
    EXPECT_EQ(cpu_quota(folder() / "pod/task", folder()), 2U);
    EXPECT_EQ(cpu_quota(folder(), folder()), std::nullopt);
    put("pod/task/cpu.max", "nonsense\n");
    EXPECT_EQ(cpu_quota(folder() / "pod/task", folder()), 2U);
}

TEST_F(Limits, CachedFilesDoNotCountAsUsedMemory) {
    put("pod/memory.max", "1000\n");
    put("pod/memory.current", "900\n");
    EXPECT_EQ(memory_headroom(folder() / "pod", folder()), 100U);
    put("pod/memory.stat", "anon 100\ninactive_file 700\nactive_file 90\n");
    EXPECT_EQ(memory_headroom(folder() / "pod", folder()), 800U);
    put("pod/memory.stat", "inactive_file 70000\n");
    EXPECT_EQ(memory_headroom(folder() / "pod", folder()), 1000U);
    put("pod/task/memory.max", "max\n");
    EXPECT_EQ(memory_headroom(folder() / "pod/task", folder()), 1000U);
    put("pod/task/memory.max", "10\n");
    EXPECT_EQ(memory_headroom(folder() / "pod/task", folder()), 10U);
}

TEST_F(Limits, AvailableMemoryIsWhatTheSystemSays) {
    put("meminfo", "MemTotal:       9 kB\nMemFree: 1 kB\nMemAvailable:       3 kB\n");
    EXPECT_EQ(available_memory(folder()), 3U * 1024);
    EXPECT_GT(available_memory(), std::size_t{1} << 20);
}

TEST_F(Limits, RanksShareThreads) {
    ::setenv("LOCAL_WORLD_SIZE", "1", 1);
    const std::size_t alone = thread_limit();
    ::setenv("LOCAL_WORLD_SIZE", "1000000", 1);
    EXPECT_EQ(thread_limit(), 1U);
    ::unsetenv("LOCAL_WORLD_SIZE");
    EXPECT_GE(alone, 1U);
}

}  // namespace
}  // namespace waywiser::transfer
