// The CPUs on which the threads of a context run: those that the program names.
#include "transfer/cpu_choice.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "host/affinity.hpp"
#include "transfer/discover.hpp"
#include "transfer/engine_options.hpp"
#include "transfer/side.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::transfer {
namespace {

// A machine of two nodes, each with a half of the CPUs of this process, or all with one CPU.
Machine two_nodes() {
    const std::vector<int> allowed = host::allowed_cpus();
    const auto half = allowed.begin() + static_cast<std::ptrdiff_t>((allowed.size() + 1) / 2);
    return {.numa = {{0, {allowed.begin(), half}}, {1, {half, allowed.end()}}},
            .gpus = {},
            .files = {},
            .ranks = {}};
}

std::string message_of(const CpuChoice& choice, Machine machine = two_nodes()) {
    try {
        restrict_cpus(machine, choice);
    } catch (const InvalidCopy& error) {
        return error.what();
    }
    return "";
}

TEST(CpuChoice, LeavesAllWithoutAChoice) {
    Machine machine = two_nodes();
    EXPECT_EQ(restrict_cpus(machine, {}), std::vector<int>{});
    EXPECT_EQ(machine.numa.front().cpus, two_nodes().numa.front().cpus);
}

TEST(CpuChoice, TakesOtherCpusFromTheNodes) {
    const std::vector<int> allowed = host::allowed_cpus();
    Machine machine = two_nodes();
    const int last = allowed.back();
    EXPECT_EQ(restrict_cpus(machine, {.cpus = {last, last, 8000}, .numa_nodes = {}}),
              std::vector<int>{last});
    std::vector<int> left;
    for (const NumaNode& node : machine.numa) {
        left.insert(left.end(), node.cpus.begin(), node.cpus.end());
    }
    EXPECT_EQ(left, std::vector<int>{last});
    machine = two_nodes();
    EXPECT_EQ(restrict_cpus(machine, {.cpus = {}, .numa_nodes = {0}}),
              two_nodes().numa.front().cpus);
    EXPECT_TRUE(machine.numa.back().cpus.empty());
    machine = two_nodes();
    EXPECT_EQ(restrict_cpus(machine, {.cpus = {allowed.front()}, .numa_nodes = {1, 0}}),
              std::vector<int>{allowed.front()});
}

TEST(CpuChoice, SaysWhatLeavesNone) {
    const std::string allowed = cpu_list(host::allowed_cpus());
    std::string message = message_of({.cpus = {8001, 8000, 7000}, .numa_nodes = {}});
    EXPECT_NE(message.find("cpus are 7000,8000-8001"), std::string::npos) << message;
    EXPECT_NE(message.find("may use the CPUs " + allowed), std::string::npos) << message;
    EXPECT_NE(message.find("taskset"), std::string::npos) << message;
    message = message_of({.cpus = {-1, 0}, .numa_nodes = {}});
    EXPECT_NE(message.find("cpus has -1"), std::string::npos) << message;
    message = message_of({.cpus = {}, .numa_nodes = {0, 7}});
    EXPECT_NE(message.find("numa_nodes has 7"), std::string::npos) << message;
    EXPECT_NE(message.find("NUMA nodes 0-1"), std::string::npos) << message;
    Machine machine = two_nodes();
    machine.numa.back().cpus.clear();
    message = message_of({.cpus = {}, .numa_nodes = {1}}, machine);
    EXPECT_NE(message.find("numa_nodes are 1"), std::string::npos) << message;
}

TEST(CpuChoice, IsTheDefaultNumberOfThreads) {
    ::setenv("LOCAL_WORLD_SIZE", "1000000", 1);
    const std::size_t shared = completed({.cpus = {0, 1, 2}}).threads;
    const std::size_t own = completed({.cpus = {0, 1, 2}, .own_cpus = true}).threads;
    ::unsetenv("LOCAL_WORLD_SIZE");
    EXPECT_EQ(shared, 1U);
    EXPECT_GE(own, shared);
    EXPECT_LE(completed({.cpus = {0}}).threads, 1U);
    EXPECT_LE(completed({.threads = 100, .cpus = {0, 1}}).threads, 2U);
}

TEST(CpuLists, AreWrittenAsTheKernelWritesThem) {
    EXPECT_EQ(cpu_list({}), "none");
    EXPECT_EQ(cpu_list({4}), "4");
    EXPECT_EQ(cpu_list({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
    EXPECT_EQ(parse_cpu_list(cpu_list({0, 1, 2, 5})), (std::vector<int>{0, 1, 2, 5}));
}

// The affinities of this process's threads with this name.
std::vector<std::vector<int>> affinities_of(const std::string& name) {
    std::vector<std::vector<int>> found;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream named(task.path() / "comm");
        std::string comm;
        std::getline(named, comm);
        if (comm != name) continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        if (sched_getaffinity(std::stoi(task.path().filename()), sizeof set, &set) != 0) continue;
        std::vector<int> cpus;
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
        }
        found.push_back(cpus);
    }
    return found;
}

class ContextOnCpus : public test::OnFake {};

TEST_F(ContextOnCpus, RunsItsThreadsThere) {
    const std::vector<int> before = host::allowed_cpus();
    const int last = before.back();
    Context context({.pinned_bytes = 8 * kMiB, .cpus = {last}});
    EXPECT_EQ(context.usage().most_threads, 1U);
    std::vector<std::byte> from(16 * kMiB, std::byte{7});
    gpu::DeviceBuffer device(0, from.size());
    context.copy_async(device.data(), from.data(), from.size()).result();
    const auto found = affinities_of("waywiser-copy");
    ASSERT_FALSE(found.empty());
    for (const std::vector<int>& cpus : found) EXPECT_EQ(cpus, std::vector<int>{last});
    EXPECT_EQ(host::allowed_cpus(), before);
}

TEST_F(ContextOnCpus, FailsWithoutOne) {
    try {
        const Context context({.cpus = {8000}});
        FAIL() << "it has no CPU";
    } catch (const TransferError& error) {
        EXPECT_EQ(error.status(), WAYWISER_INVALID);
        EXPECT_TRUE(test::one_line(error.what())) << error.what();
    }
    EXPECT_THROW(Context({.numa_nodes = {-1}}), TransferError);
    waywiser_options options{};
    options.size = sizeof options;
    options.numa_node_count = 1;
    waywiser_context* context = nullptr;
    EXPECT_EQ(waywiser_context_create(&options, &context), WAYWISER_INVALID);
    EXPECT_EQ(context, nullptr);
}

}  // namespace
}  // namespace waywiser::transfer
