#include "measure/file_pattern.hpp"
#include "many_bytes.hpp"

#include <gtest/gtest.h>

#include "host/files.hpp"
#include "scratch_folder.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::measure {
namespace {

using test::at_file;
using test::ScratchFolder;

constexpr std::size_t kBytes = (std::size_t{2} << 20) + 13;
constexpr std::uint64_t kSeed = 42;
const Memory kPageable{"pageable", {Place::Kind::numa, 0, {}}, {}};

class FilePattern : public ::testing::Test {
protected:
    const ScratchFolder folder;
    const Machine machine = folder.machine();
    const Memory memory = at_file("file", "scratch");
    const std::unique_ptr<Buffer> buffer =
        Memories::instance().find("file")->allocate(memory, kBytes + 4096, machine);
    const View view{nullptr, kBytes, &memory, nullptr, buffer->file(), 4096};
};

TEST_F(FilePattern, IsTheSameAsInMemory) {
    std::vector<std::byte> bytes(kBytes);
    fill({bytes.data(), kBytes, &kPageable}, kSeed, machine);
    write_file(view, kSeed, Content::pattern);
    std::vector<std::byte> held(kBytes);
    host::read_fully(view.file, held.data(), kBytes, view.offset);
    EXPECT_TRUE(held == bytes);
    EXPECT_EQ(check_file(view, kSeed).count, 0U);
}

TEST_F(FilePattern, HasNoByteInCommonWithItsComplement) {
    write_file(view, kSeed, Content::complement);
    const Mismatch wrong = check_file(view, kSeed);
    EXPECT_EQ(wrong.count, kBytes);
    EXPECT_EQ(wrong.first, 0U);
}

TEST_F(FilePattern, ShowsWhereAByteIsWrong) {
    write_file(view, kSeed, Content::pattern);
    const std::size_t at = kBytes - 3;
    std::byte one{};
    host::read_fully(view.file, &one, 1, view.offset + at);
    one = ~one;
    host::write_fully(view.file, &one, 1, view.offset + at);
    const Mismatch wrong = check_file(view, kSeed);
    EXPECT_EQ(wrong.count, 1U);
    EXPECT_EQ(wrong.first, at);
}

TEST_F(FilePattern, OfAFileThatIsOnlyReadIsWhatItHolds) {
    const Memory theirs = at_file("file", folder.user_file());
    const auto file = Memories::instance().find("file")->allocate(theirs, kBytes, machine);
    const View source{nullptr, kBytes, &theirs, nullptr, file->file(), 0};
    auto arrived = test::sequence(kBytes, 11);
    const View destination{arrived.data(), kBytes, &kPageable};
    EXPECT_EQ(compare_with_file(destination, source, machine).count, 0U);
    arrived[77] = ~arrived[77];
    const Mismatch wrong = compare_with_file(destination, source, machine);
    EXPECT_EQ(wrong.count, 1U);
    EXPECT_EQ(wrong.first, 77U);
}

TEST_F(FilePattern, ComparesScatteredPiecesInTheirOrder) {
    Transfer transfer{{kPageable, kPageable, "cpu"}, 64UL * 1024, {}};
    transfer.layout = {Layout::Kind::list, {{"piece", "4096"}}};
    const Arrangement scattered = arrange(transfer, Side::destination);
    const Memory theirs = at_file("mapped", folder.user_file());
    const auto mapped = Memories::instance().find("mapped")->allocate(theirs, kBytes, machine);
    std::vector<std::byte> arrived(scattered.extent);
    for (std::size_t run = 0; run < scattered.count; ++run) {
        std::copy_n(mapped->data() + run * scattered.run, scattered.run,
                    arrived.data() + scattered.offset(run));
    }
    const View source{mapped->data(), transfer.bytes, &theirs};
    const View destination{arrived.data(), transfer.bytes, &kPageable, &scattered};
    EXPECT_EQ(compare_with_file(destination, source, machine).count, 0U);
    arrived[scattered.offset(3)] = ~arrived[scattered.offset(3)];
    EXPECT_EQ(compare_with_file(destination, source, machine).first, 3 * scattered.run);
}

}  // namespace
}  // namespace waywiser::measure
