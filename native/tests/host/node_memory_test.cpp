#include "host/node_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "conformance.hpp"
#include "host/pages.hpp"
#include "scratch_folder.hpp"
#include "units.hpp"

namespace waywiser::host {
namespace {

// A node as the kernel describes it, in MiB.
void write_node(const std::filesystem::path& nodes, int node, std::size_t total, std::size_t free,
                std::size_t clean, std::size_t dirty) {
    const auto folder = nodes / ("node" + std::to_string(node));
    std::filesystem::create_directories(folder);
    std::ofstream out(folder / "meminfo");
    const auto line = [&](const std::string& name, std::size_t mib) {
        out << "Node " << node << " " << name << ":   " << mib * 1024 << " kB\n";
    };
    line("MemTotal", total);
    line("MemFree", free);
    line("Inactive(anon)", 999);  // programs have it
    line("Active(file)", clean / 2);
    line("Inactive(file)", clean - clean / 2 + dirty);
    line("Dirty", dirty);
    out << "Node " << node << " HugePages_Free:     0\n";
}

TEST(NodeMemory, IsWhatIsFreeAndCleanLessAMargin) {
    const test::ScratchFolder folder;
    write_node(folder.path(), 3, 1000, 200, 60, 40);
    EXPECT_EQ(free_on_node(3, folder.path()), (200 + 60 / 2 - 32) * kMiB);
}

TEST(NodeMemory, LeavesALargeNodeAFractionOfIt) {
    const test::ScratchFolder folder;
    write_node(folder.path(), 0, 65536, 5000, 0, 0);
    EXPECT_EQ(free_on_node(0, folder.path()), std::size_t{5000 - 1024} * kMiB);
}

TEST(NodeMemory, OfAFullNodeIsNothing) {
    const test::ScratchFolder folder;
    write_node(folder.path(), 1, 160, 20, 4, 0);
    EXPECT_EQ(free_on_node(1, folder.path()), 0u);
}

TEST(NodeMemory, OfANodeThatTheSystemDoesNotStateIsUnknown) {
    const test::ScratchFolder folder;
    EXPECT_EQ(free_on_node(1, folder.path()), std::nullopt);
    std::filesystem::create_directories(folder.path() + "/node1");
    std::ofstream(folder.path() + "/node1/meminfo") << "nonsense\nNode 1 MemFree: x kB\n";
    EXPECT_EQ(free_on_node(1, folder.path()), std::nullopt);
}

TEST(NodeMemory, HasNoPagesThatDoNotFit) {
    const NumaNode node = test::this_machine().numa.front();
    const auto free = free_on_node(node.index);
    if (!free) GTEST_SKIP() << "this system does not state the memory of its nodes";
    try {
        const Pages pages(4 * *free + kMiB, node, PageSize::standard);
        FAIL() << "pages beyond the memory of the node";
    } catch (const NodeFull& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("numa:" + std::to_string(node.index)), std::string::npos) << text;
        EXPECT_NE(text.find("MiB are free"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace waywiser::host
