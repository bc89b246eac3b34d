// Tables that CPython 3.9, 3.10 and 3.12 make of one function, with the lines that it says itself.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "trace/caller.hpp"
#include "trace/line_table.hpp"
#include "trace/python_layout.hpp"

namespace waywiser::trace {
namespace {

using Runs = std::vector<std::pair<int, int>>;  // first instruction, line

void expect_lines(int minor, const std::vector<std::uint8_t>& table, int first_line,
                  const Runs& runs, int end) {
    int line = 0;
    std::size_t next = 0;
    for (int instruction = 0; instruction < end; instruction += 2) {
        if (next < runs.size() && runs[next].first == instruction) line = runs[next++].second;
        EXPECT_EQ(line_of(minor, table, first_line, instruction), line) << instruction;
    }
}

TEST(TracePython, LinesOf39) {
    expect_lines(9, {0, 1, 4, 3, 4, 1, 2, 255, 4, 2, 8, 1, 10, 1, 4, 127, 0, 73, 6, 1, 2, 255}, 1,
                 {{0, 2},
                  {4, 5},
                  {8, 6},
                  {10, 5},
                  {14, 7},
                  {22, 8},
                  {32, 9},
                  {36, 209},
                  {42, 210},
                  {44, 209}},
                 52);
}

TEST(TracePython, LinesOf310) {
    expect_lines(10, {4, 1, 4, 3, 2, 1, 4, 255, 8, 2, 10, 1, 4, 1, 0, 127, 6, 73, 2, 1, 6, 255}, 1,
                 {{0, 2},
                  {4, 5},
                  {8, 6},
                  {10, 5},
                  {14, 7},
                  {22, 8},
                  {32, 9},
                  {36, 209},
                  {42, 210},
                  {44, 209}},
                 50);
    EXPECT_EQ(line_of(10, std::vector<std::uint8_t>{4, 1, 2, 128, 2, 1}, 1, 4), 0);
    EXPECT_EQ(line_of(10, std::vector<std::uint8_t>{4, 1, 2, 128, 2, 1}, 1, 6), 3);
}

TEST(TracePython, LinesOf312) {
    expect_lines(12,
                 {128, 0,  216, 8,   9,   128, 65,  244, 6,  0,   9,   10,  136, 33, 216, 10,  11,
                  243, 3,  1,   9,   13,  128, 65,  224, 13, 14,  242, 0,   1,   5,  13,  136, 1,
                  220, 8,  9,   136, 33,  141, 4,   240, 3,  1,   5,   13,  224, 9,  10,  128, 65,
                  240, 82, 6,   0,   20,  21,  246, 3,   1,  12,  22,  216, 14,  15, 138, 1,   242,
                  3,   1,  12,  22,  240, 0,   1,   5,   22, 249, 242, 0,   1,   12, 22},
                 1,
                 {{0, 1},
                  {2, 2},
                  {6, 5},
                  {18, 6},
                  {20, 5},
                  {30, 7},
                  {40, 8},
                  {64, 7},
                  {66, 9},
                  {70, 210},
                  {72, 209},
                  {86, 210},
                  {94, 209},
                  {102, 0},
                  {106, 209}},
                 112);
}

TEST(TracePython, TablesThatEndEarlyAreReadToTheirEndOnly) {
    for (const int minor : {9, 10, 11, 14}) {
        for (std::size_t length = 0; length < 8; ++length) {
            for (int byte = 0; byte < 256; ++byte) {
                const std::vector<std::uint8_t> table(length, static_cast<std::uint8_t>(byte));
                line_of(minor, table, 1, 1000);
            }
        }
        EXPECT_EQ(line_of(minor, std::vector<std::uint8_t>{}, 5, -2), 5);
    }
}

TEST(TracePython, LayoutsAreKnownForVersionsWithAGil) {
    EXPECT_FALSE(python_layout(8, nullptr));
    EXPECT_FALSE(python_layout(15, nullptr));
    EXPECT_FALSE(python_layout(13, nullptr));  // its offsets are in the program
    for (const int minor : {9, 10, 11, 12}) EXPECT_EQ(python_layout(minor, nullptr)->minor, minor);

    std::array<std::uint64_t, 96> offsets{};
    for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i;
    EXPECT_FALSE(python_layout(13, offsets.data()));
    std::memcpy(offsets.data(), "xdebugpy", 8);
    offsets[1] = 0x030d00f0;
    offsets[2] = 0;
    ASSERT_TRUE(python_layout(13, offsets.data()));
    EXPECT_EQ(python_layout(13, offsets.data())->thread_frame, 23u);
    EXPECT_FALSE(python_layout(14, offsets.data())) << "of another version";
    offsets[2] = 1;
    EXPECT_FALSE(python_layout(13, offsets.data())) << "without a GIL";
}

TEST(TracePython, OwnCodeIsWhatIsInNoPackage) {
    for (const char* const own :
         {"/home/me/train.py", "<stdin>", "<ipython-input-3-abc>", "/home/python3/x.py",
          "/work/lib/python3x/a.py", "relative.py", "/home/me/libpython3.11/a.py"})
        EXPECT_TRUE(is_own_code(own)) << own;
    for (const char* const other :
         {"/usr/lib/python3/dist-packages/a.py", "/usr/lib/python3.11/threading.py",
          "/x/.venv/lib/python3.12/site-packages/torch/a.py", "<frozen importlib._bootstrap>",
          "/usr/lib64/python3.9/queue.py", "/opt/python311.zip/a.py"})
        EXPECT_FALSE(is_own_code(other)) << other;
}

}  // namespace
}  // namespace waywiser::trace
