// Reads and writes a file through the page cache, as most programs do: DMA between the disk and the
// kernel's pages, and a copy by the CPU.
#include "executor/file_path.hpp"
#include "host/files.hpp"

namespace waywiser {
namespace {

class BufferedExecution final : public Execution {
public:
    BufferedExecution(std::unique_ptr<host::BlockIo> io, bool sync)
        : io_(std::move(io)), sync_(sync) {}

    void wake() override { io_->wake(); }

    void start(const View& source, const View& destination) override {
        const host::FileRange range = file_range(source, destination);
        io_->move(range);
        if (range.writing && sync_) host::reach_device(range.file);
    }

private:
    std::unique_ptr<host::BlockIo> io_;
    bool sync_;
};

class BufferedIo final : public FileExecutor {
public:
    // The default depth is 1, as in a program that reads a file sequentially.
    BufferedIo() : FileExecutor({"1", "8"}) {}

    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "buffered-io",
            .description =
                "reads and writes of a file through the page cache: what direct-io is compared "
                "with",
            .parameters = all_parameters(),
            .source = "read(2), write(2) and fdatasync(2) of the Linux manual"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {
            .comparison = true,
            .family = Family::file,
            .shares = {.links = false},
            .calls = {{.text = "read(2)", .between = {{Place::Kind::file, Place::Kind::numa}}},
                      {.text = "write(2)", .between = {{Place::Kind::numa, Place::Kind::file}}}},
            .library = {.contiguous = true, .settings = {"block", "depth"}}};
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine&) const override {
        return std::make_unique<BufferedExecution>(
            block_io(*this, transfer, machine),
            parameter(*this, transfer, machine, "sync") == "yes");
    }
};

const Registered<Executor, BufferedIo> registered;

}  // namespace
}  // namespace waywiser
