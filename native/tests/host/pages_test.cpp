#include "host/pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "units.hpp"
#include "waywiser/huge_page.hpp"

namespace waywiser::host {
namespace {

const std::size_t kOfSeveralHugePages = std::max(32 * kMiB, 2 * huge_page_bytes());

const NumaNode& first_node() {
    static const Machine machine = test::this_machine();
    return machine.numa.front();
}

bool huge_pages_on_request() {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string modes;
    std::getline(file, modes);
    return modes.find("[never]") == std::string::npos && !modes.empty();
}

// What a field of /proc/self/smaps says of the mapping.
std::size_t bytes_of_the_mapping(const std::byte* data, const char* field) {
    std::ifstream smaps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(smaps, line);) {
        std::uintptr_t from = 0;
        std::uintptr_t to = 0;
        char dash = 0;
        std::istringstream fields(line);
        if (fields >> std::hex >> from >> dash >> to && dash == '-') {
            const auto at = reinterpret_cast<std::uintptr_t>(data);
            inside = from <= at && at < to;
        } else if (inside && line.starts_with(field)) {
            return std::stoul(line.substr(line.find(':') + 1)) * kKiB;
        }
    }
    return 0;
}

// Of the first mapping, which is of a file.
std::size_t base_page_of_the_kernel() {
    std::ifstream smaps("/proc/self/smaps");
    for (std::string line; std::getline(smaps, line);) {
        if (line.starts_with("KernelPageSize:")) {
            return std::stoul(line.substr(line.find(':') + 1)) * kKiB;
        }
    }
    return 0;
}

TEST(Pages, HaveTheSizeThatTheKernelUses) { EXPECT_EQ(page_bytes(), base_page_of_the_kernel()); }

TEST(Pages, AreZeroAlignedAndThere) {
    const Pages pages(5 * kMiB + 3, first_node(), PageSize::standard);
    EXPECT_EQ(pages.bytes(), 5 * kMiB + 3);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % (2 * kMiB), 0u);
    EXPECT_TRUE(std::all_of(pages.data(), pages.data() + pages.bytes(),
                            [](std::byte b) { return b == std::byte{0}; }));
    // The constructor touched them: the kernel knows where they are, or may not be queried.
    const Placement& placement = pages.placement();
    EXPECT_TRUE(placement.state == Placement::State::verified || !placement.detail.empty());
}

TEST(Pages, OfStandardSizeAreNotHuge) {
    const Pages pages(8 * kMiB, first_node(), PageSize::standard);
    EXPECT_EQ(pages.placement().fraction_huge, 0);
}

// One table of pages has as many entries of 8 bytes as fit on a page.
TEST(Pages, AreHugeWhereOneTableCoversThem) {
    EXPECT_EQ(huge_page_bytes(), base_page_of_the_kernel() / 8 * base_page_of_the_kernel());
}

TEST(Pages, AreHugeOnRequest) {
    if (!huge_pages_on_request()) GTEST_SKIP() << "this kernel gives no transparent huge pages";
    const Pages pages(kOfSeveralHugePages, first_node(), PageSize::huge);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % huge_page_bytes(), 0u);
    // The kernel may have too little contiguous memory for some of them.
    EXPECT_GT(pages.placement().fraction_huge, 0);
}

TEST(Pages, AreAsHugeAsTheKernelStates) {
    if (!huge_pages_on_request()) GTEST_SKIP() << "this kernel gives no transparent huge pages";
    const Pages pages(kOfSeveralHugePages, first_node(), PageSize::huge);
    const auto huge = static_cast<std::size_t>(pages.placement().fraction_huge *
                                               static_cast<double>(kOfSeveralHugePages));
    EXPECT_EQ(huge % huge_page_bytes(), 0u);
    EXPECT_LE(huge, bytes_of_the_mapping(pages.data(), "AnonHugePages:"));
}

TEST(Pages, TakeLessThanTwoMibMoreThanTheyHave) {
    for (const std::size_t bytes : {kMiB, 6 * kMiB + 1, kOfSeveralHugePages + 3 * kMiB}) {
        const Pages pages(bytes, first_node(), PageSize::huge);
        const std::size_t mapped = (bytes / huge_page_bytes() + 1) * huge_page_bytes();
        std::vector<unsigned char> is_there(mapped / page_bytes());
        ASSERT_EQ(mincore(pages.data(), mapped, is_there.data()), 0);
        const auto taken = static_cast<std::size_t>(std::ranges::count(is_there, 1)) * page_bytes();
        EXPECT_GE(taken, bytes);
        EXPECT_LT(taken, bytes + 2 * kMiB);
    }
}

TEST(Pages, ThatNobodyHasAreABadAllocation) {
    EXPECT_THROW(Pages(std::size_t{1} << 60, first_node(), PageSize::standard), std::bad_alloc);
}

TEST(Placement, OfAnotherNodeIsNotClaimed) {
    const Pages pages(kMiB, first_node(), PageSize::standard);
    const Placement elsewhere = placement_of(pages.data(), pages.bytes(), first_node().index + 1);
    EXPECT_NE(elsewhere.state, Placement::State::verified);
    EXPECT_EQ(elsewhere.fraction_on_place, 0);
    EXPECT_NE(elsewhere.detail, "");
}

}  // namespace
}  // namespace waywiser::host
