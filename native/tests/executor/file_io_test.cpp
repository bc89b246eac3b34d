// Direct and buffered I/O: correct bytes at awkward sizes and offsets, for reads and writes, with
// every parameter; and what they do not support.
#include <gtest/gtest.h>

#include <cstring>

#include "case_stride.hpp"
#include "host/files.hpp"
#include "many_bytes.hpp"
#include "scratch_folder.hpp"
#include "transfer/engine.hpp"
#include "units.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

using test::at_file;
using test::ScratchFolder;

const Memory kPageable{"pageable", {Place::Kind::numa, 0, {}}, {}};

class FileIo : public ::testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        if (GetParam() == "direct-io" && !folder.direct()) {
            GTEST_SKIP() << folder.path() << " does not let files be opened with O_DIRECT";
        }
    }
    // The defaults, and each other value of each parameter alone.
    [[nodiscard]] std::vector<Transfer> variants(const Memory& from, const Memory& to) const {
        std::vector<Transfer> found{{{from, to, GetParam()}, 0, {}}};
        const Executor& executor = *Executors::instance().find(GetParam());
        for (const Parameter& known : executor.parameters(found.front(), machine)) {
            for (const std::string& choice : known.choices) {
                found.push_back({{from, to, GetParam()}, 0, {{known.name, choice}}});
            }
        }
        return found;
    }
    void run(const Transfer& transfer, const View& source, const View& destination) const {
        const auto engine_owner = transfer::Engine::make(machine, {});
        transfer::Engine& engine = *engine_owner;
        const auto execution =
            Executors::instance().find(GetParam())->prepare(transfer, machine, {}, engine);
        execution->wake();
        execution->start(source, destination);
        execution->finish();
    }

    const ScratchFolder folder;
    const Machine machine = folder.machine();
    const std::unique_ptr<Buffer> file =
        Memories::instance().find("file")->allocate(at_file("file", "scratch"), 4 * kMiB, machine);
};

struct Shape {
    std::size_t bytes, in_file, in_memory;
};
constexpr Shape kShapes[] = {
    {1, 0, 0},        {4096, 0, 0},          {4097, 0, 0},         {8191, 1, 1},
    {65536, 4096, 0}, {2 * kMiB + 13, 0, 0}, {2 * kMiB, 4096, 64}, {2 * kMiB + 7, 4093, 3}};

TEST_P(FileIo, WritesTheRightBytesAndNoOthers) {
    for (Transfer& transfer : variants(kPageable, at_file("file", "scratch"))) {
        for (const Shape& shape : test::few_of(kShapes)) {
            transfer.bytes = shape.bytes;
            SCOPED_TRACE(transfer.text());
            const std::vector<std::byte> before(3 * kMiB, std::byte{0x5A});
            host::write_fully(file->file(), before.data(), before.size(), 0);
            const auto sent = test::sequence(shape.bytes, 7);
            const auto memory = host::page_aligned(shape.bytes + shape.in_memory);
            std::copy(sent.begin(), sent.end(), memory.get() + shape.in_memory);
            run(transfer, {memory.get() + shape.in_memory, shape.bytes, &transfer.path.source},
                {nullptr, shape.bytes, &transfer.path.destination, nullptr, file->file(),
                 shape.in_file});
            std::vector<std::byte> expected = before;
            std::ranges::copy(sent, expected.begin() + static_cast<std::ptrdiff_t>(shape.in_file));
            std::vector<std::byte> held(before.size());
            host::read_fully(file->file(), held.data(), held.size(), 0);
            EXPECT_TRUE(test::same_bytes(held.data(), expected.data(), held.size()));
        }
    }
}

TEST_P(FileIo, ReadsTheRightBytesAndNoOthers) {
    const auto content = test::sequence(3 * kMiB, 9);
    host::write_fully(file->file(), content.data(), content.size(), 0);
    constexpr std::size_t kGuard = 64;
    for (Transfer& transfer : variants(at_file("file", "scratch"), kPageable)) {
        for (const Shape& shape : test::few_of(kShapes)) {
            transfer.bytes = shape.bytes;
            SCOPED_TRACE(transfer.text());
            const std::size_t capacity = shape.in_memory + shape.bytes + kGuard;
            const auto memory = host::page_aligned(capacity);
            std::fill_n(memory.get(), capacity, std::byte{0x5A});
            std::vector<std::byte> expected(capacity, std::byte{0x5A});
            std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(shape.in_file), shape.bytes,
                        expected.begin() + static_cast<std::ptrdiff_t>(shape.in_memory));
            run(transfer,
                {nullptr, shape.bytes, &transfer.path.source, nullptr, file->file(), shape.in_file},
                {memory.get() + shape.in_memory, shape.bytes, &transfer.path.destination});
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory.get()));
        }
    }
}

TEST_P(FileIo, ReadsAFileOfSomebodyAndLeavesItAsItIs) {
    const Memory theirs = at_file("file", folder.user_file());
    const auto written = std::filesystem::last_write_time(folder.user_file());
    Transfer transfer{{theirs, kPageable, GetParam()}, ScratchFolder::kFileBytes, {}};
    ASSERT_EQ(unsupported_reason(transfer, machine), std::nullopt);
    const auto buffer =
        Memories::instance().find("file")->allocate(theirs, transfer.bytes, machine);
    const auto memory = host::page_aligned(transfer.bytes);
    run(transfer, {nullptr, transfer.bytes, &transfer.path.source, nullptr, buffer->file(), 0},
        {memory.get(), transfer.bytes, &transfer.path.destination});
    const auto content = test::sequence(transfer.bytes, 11);
    EXPECT_TRUE(std::equal(content.begin(), content.end(), memory.get()));
    EXPECT_EQ(std::filesystem::last_write_time(folder.user_file()), written);

    const auto reason = unsupported_reason({{kPageable, theirs, GetParam()}, 4096, {}}, machine);
    ASSERT_TRUE(reason);
    EXPECT_NE(reason->find("only read"), std::string::npos) << *reason;
}

TEST_P(FileIo, ReportsTheErrorOfASystemCall) {
    const Transfer transfer{{at_file("file", "scratch"), kPageable, GetParam()}, 13 * kMiB, {}};
    const auto memory = host::page_aligned(transfer.bytes);
    EXPECT_THROW(
        run(transfer, {nullptr, transfer.bytes, &transfer.path.source, nullptr, file->file(), 0},
            {memory.get(), transfer.bytes, &transfer.path.destination}),
        NotSupported)
        << "the file is shorter";
}

INSTANTIATE_TEST_SUITE_P(Both, FileIo, ::testing::Values("direct-io", "buffered-io"),
                         [](const auto& info) {
                             return info.param.substr(0, info.param.find('-'));
                         });

std::string reason(const Memory& from, const Memory& to, const std::string& executor,
                   const Machine& machine) {
    return unsupported_reason({{from, to, executor}, 4096, {}}, machine).value_or("");
}

TEST(FileIoUnsupportedReason, NameWhatDoesNotFit) {
    Machine machine{{{0, {0}}},
                    {{0, "GPU-0", -1, {}, false}},
                    {{"scratch", "/data", true, kMiB, "ext4", true},
                     {"odd", "/odd", true, kMiB, "oddfs", false},
                     {"tmpfs", "/dev/shm", true, kMiB, "tmpfs", true}}};
    const Memory file = at_file("file", "scratch");
    const Memory device{"device", {Place::Kind::gpu, 0, {}}, {}};
    for (const char* executor : {"direct-io", "buffered-io"}) {
        EXPECT_EQ(reason(file, kPageable, executor, machine), "");
        EXPECT_NE(reason(file, device, executor, machine).find("GPU"), std::string::npos);
        EXPECT_NE(reason(file, file, executor, machine).find("both ends"), std::string::npos);
        EXPECT_NE(reason(kPageable, kPageable, executor, machine), "");
    }
    EXPECT_NE(reason(at_file("file", "odd"), kPageable, "direct-io", machine).find("oddfs"),
              std::string::npos);
    EXPECT_EQ(reason(at_file("file", "odd"), kPageable, "buffered-io", machine), "");
    EXPECT_NE(reason(at_file("file", "tmpfs"), kPageable, "direct-io", machine).find("memory"),
              std::string::npos);
    EXPECT_NE(
        reason(at_file("file", "scratch", {{"state", "warm"}}), kPageable, "direct-io", machine),
        "");
    EXPECT_NE(reason(file, kPageable, "copy-engine", machine), "");
    EXPECT_EQ(reason(at_file("mapped", "scratch"), device, "copy-engine", machine), "");
    EXPECT_EQ(reason(at_file("mapped", "scratch"), kPageable, "cpu", machine), "");
    EXPECT_EQ(reason(kPageable, at_file("mapped", "scratch"), "cpu", machine), "");
}

}  // namespace
}  // namespace waywiser
