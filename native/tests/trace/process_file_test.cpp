#include "trace/process_file.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "trace/json_writer.hpp"
#include "trace/pages.hpp"

namespace waywiser::trace {
namespace {

std::string quoted(const std::string& text) {
    JsonWriter json;
    json.value(text);
    return json.text();
}

TEST(TraceFile, TextIsAlwaysJson) {
    EXPECT_EQ(quoted("a\"b\\c\n\x01"), R"("a\"b\\c\u000a\u0001")");
    EXPECT_EQ(quoted("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    for (const char* const no_utf8 :
         {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"})
        EXPECT_EQ(quoted(no_utf8).substr(0, 7), R"("\ufffd)") << no_utf8;
}

TEST(TraceFile, ListsAndObjectsAreSeparated) {
    JsonWriter json;
    json.begin_object();
    json.key("a").begin_list();
    json.value(1);
    json.begin_list();
    json.end_list();
    json.null();
    json.end_list();
    json.key("b").value(true);
    json.end_object();
    EXPECT_EQ(json.text(), R"({"a":[1,[],null],"b":true})");
}

TEST(TraceFile, KernelsAreNamedAsTheyAreWritten) {
    Aggregator sums;
    constexpr std::uint64_t kMillisecond = 1'000'000;
    std::uint64_t start = 10'000 * kMillisecond;
    for (const char* const name : {"_ZN2at6native4fillEif", "sgemm_kernel", "_Zno"}) {
        Activity kernel;
        kernel.what = Activity::What::Kernel;
        kernel.start = start;
        kernel.end = start + kMillisecond;
        kernel.name = sums.kernel_name(name);
        sums.add(kernel);
        start += 2 * kMillisecond;
    }
    Activity copy;
    copy.to = {.kind = Kind::Device, .gpu = 0};
    copy.start = start;
    copy.end = start + kMillisecond;
    sums.add(copy);
    sums.settle_all();
    const std::string text = to_json(describe_process("/"), sums, {{}});
    const char* const names = R"x("names":["at::native::fill(int, float)","sgemm_kernel","_Zno"])x";
    EXPECT_TRUE(text.find(names) != std::string::npos) << text;
}

TEST(TraceFile, ReplacesTheOneBeforeInOneStep) {
    std::string folder = ::testing::TempDir() + "/waywiser-trace-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    ProcessFacts facts = describe_process(folder);
    EXPECT_FALSE(facts.command.empty());
    Aggregator sums;
    EXPECT_EQ(write_file(facts, to_json(facts, sums, {{}})), 0);
    EXPECT_EQ(write_file(facts, "second"), 0);
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        ++files;
        std::ifstream file(entry.path());
        std::string text;
        file >> text;
        EXPECT_EQ(text, "second");
    }
    EXPECT_EQ(files, 1);
    facts.folder += "/none";
    EXPECT_EQ(write_file(facts, "third"), ENOENT);
    std::filesystem::remove_all(folder);
}

TEST(TraceFile, PagesThatAreNotThereAreNew) {
    constexpr std::size_t kBytes = 1 << 20;
    void* const data =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(data, MAP_FAILED);
    madvise(data, kBytes, MADV_NOHUGEPAGE);
    PageSample sample = sample_pages(data, kBytes);
    EXPECT_EQ(sample.sampled, 16);
    EXPECT_EQ(sample.absent, 16);
    std::memset(data, 1, kBytes);
    sample = sample_pages(data, kBytes);
    EXPECT_EQ(sample.absent, 0);
    EXPECT_EQ(sample.pages[0], 16);
    EXPECT_EQ(sample_pages(static_cast<char*>(data) + 4095, 2).sampled, 2);
    munmap(data, kBytes);
    EXPECT_EQ(sample_pages(nullptr, 100).sampled, 0);
}

}  // namespace
}  // namespace waywiser::trace
