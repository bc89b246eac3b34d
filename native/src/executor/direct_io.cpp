// Reads and writes a file with direct I/O: DMA between the disk and memory, without the page cache.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "executor/file_path.hpp"
#include "host/files.hpp"
#include "memory/placed_file.hpp"

namespace waywiser {
namespace {

using host::FileRange;
using host::kDiskBlock;

constexpr std::size_t kBounce = std::size_t{8} << 20;

bool same_file(int a, int b) {
    struct stat first{};
    struct stat second{};
    return b >= 0 && fstat(a, &first) == 0 && fstat(b, &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

FileRange part(const FileRange& whole, std::size_t from, std::size_t to) {
    FileRange some = whole;
    some.memory += from;
    some.at += from;
    some.bytes = to - from;
    return some;
}

// Whole disk blocks use direct I/O. The rest of a range before the first and after the last of them
// goes through the page cache, and memory that is not aligned to a block through memory that is. So
// any range works, and the ranges of a survey, which are aligned and at least a block, are fully
// direct.
class DirectExecution final : public Execution {
public:
    DirectExecution(std::unique_ptr<host::BlockIo> io, bool sync)
        : io_(std::move(io)), sync_(sync) {}

    void wake() override { io_->wake(); }

    void start(const View& source, const View& destination) override {
        const FileRange range = file_range(source, destination);
        if (!same_file(range.file, direct_.get())) direct_ = host::reopen_direct(range.file);
        const std::size_t head =
            std::min(range.bytes, (kDiskBlock - range.at % kDiskBlock) % kDiskBlock);
        const std::size_t tail = head + (range.bytes - head) / kDiskBlock * kDiskBlock;
        through_cache(part(range, 0, head));
        FileRange body = part(range, head, tail);
        body.file = direct_.get();
        if (reinterpret_cast<std::uintptr_t>(body.memory) % kDiskBlock == 0) {
            io_->move(body);
        } else {
            bounced(body);
        }
        through_cache(part(range, tail, range.bytes));
        if (range.writing && sync_) host::reach_device(range.file);
    }

private:
    static void through_cache(const FileRange& range) {
        if (range.writing) {
            host::write_fully(range.file, range.memory, range.bytes, range.at);
        } else {
            host::read_fully(range.file, range.memory, range.bytes, range.at);
        }
    }

    void bounced(const FileRange& body) {
        const auto aligned = host::page_aligned(std::min(kBounce, body.bytes));
        for (std::size_t from = 0; from < body.bytes; from += kBounce) {
            const FileRange piece = part(body, from, std::min(body.bytes, from + kBounce));
            FileRange instead = piece;
            instead.memory = aligned.get();
            if (piece.writing) std::memcpy(aligned.get(), piece.memory, piece.bytes);
            io_->move(instead);
            if (!piece.writing) std::memcpy(piece.memory, aligned.get(), piece.bytes);
        }
    }

    std::unique_ptr<host::BlockIo> io_;
    bool sync_;
    host::Descriptor direct_;  // of the file that was used last
};

class DirectIo final : public FileExecutor {
public:
    // Eight of 1 MiB keep a solid-state disk busy; one shows what a plain loop of reads achieves.
    DirectIo() : FileExecutor({"8", "1", "32"}) {}

    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "direct-io",
            .description =
                "reads and writes of a file around the page cache (O_DIRECT): the disk's own DMA",
            .parameters = all_parameters(),
            .source =
                "Auto-tuning of Data Communication on Heterogeneous Systems, sec. IV-B and V-B "
                "(disk "
                "I/O with O_DIRECT); open(2) of the Linux manual"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.family = Family::file,
                .shares = {.links = false, .cpus = false},
                .reference = PathClass::file,
                .calls = {{.text = "read(2) with O_DIRECT",
                           .between = {{Place::Kind::file, Place::Kind::numa}}},
                          {.text = "write(2) with O_DIRECT",
                           .between = {{Place::Kind::numa, Place::Kind::file}}}},
                .library = {.contiguous = true, .settings = {"block", "depth"}}};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        if (auto reason = FileExecutor::unsupported_reason(transfer, machine)) return reason;
        const Memory& file = file_path(transfer.path).file;
        const FilePlace& place = file_place(file, machine);
        if (in_memory(place)) {
            return place.filesystem + " keeps its files in memory: there is no disk to go to";
        }
        if (!place.direct) {
            return (place.filesystem.empty() ? "the file system" : place.filesystem) + " at " +
                   place.path + " does not let files be opened with O_DIRECT";
        }
        if (file.variant.contains("state") && file.variant.at("state") == "warm") {
            return "direct I/O goes around the page cache, warm or cold";
        }
        return std::nullopt;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine&) const override {
        return std::make_unique<DirectExecution>(
            block_io(*this, transfer, machine),
            parameter(*this, transfer, machine, "sync") == "yes");
    }
};

const Registered<Executor, DirectIo> registered;

}  // namespace
}  // namespace waywiser
