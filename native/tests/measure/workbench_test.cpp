#include "measure/workbench.hpp"

#include <gtest/gtest.h>

namespace waywiser::measure {
namespace {

std::vector<int> range(int first, int end) {
    std::vector<int> cpus;
    for (int cpu = first; cpu < end; ++cpu) cpus.push_back(cpu);
    return cpus;
}

Transfer copy(int node, const char* threads) {
    const Memory memory{"pageable", {Place::Kind::numa, node, {}}, {}};
    return {{memory, memory, "cpu"}, 4096, {{"threads", threads}}};
}

// Threads on one node take no CPU from transfers of another: they would run out of them there.
TEST(Workbench, SharesOutTheCpusOfEachNodeByItself) {
    const Machine machine{{{0, range(0, 8)}, {1, range(8, 16)}}, {}};
    const Request request{.transfers = {copy(0, "3"), copy(1, "6"), copy(0, "3")}, .rule = {}};
    BufferPool pool(machine, std::size_t{1} << 20);
    Streams streams;
    const Workbench bench(request, machine, pool, streams);
    ASSERT_EQ(bench.parts().size(), 3u);
    EXPECT_EQ(bench.parts()[0].cpu, std::vector<int>{1});
    EXPECT_EQ(bench.parts()[1].cpu, std::vector<int>{9});
    EXPECT_EQ(bench.parts()[2].cpu, std::vector<int>{4});
}

}  // namespace
}  // namespace waywiser::measure
