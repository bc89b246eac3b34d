#include <algorithm>
#include <atomic>
#include <functional>

#include "block_io.hpp"
#include "files.hpp"
#include "team.hpp"

namespace waywiser::host {
namespace {

// The calling thread takes blocks like the others, so that one request at a time needs no other
// thread.
class ThreadedIo final : public BlockIo {
public:
    ThreadedIo(const std::vector<int>& cpus, std::size_t helpers, std::size_t block)
        : block_(block), team_(std::vector<std::vector<int>>(helpers, cpus)) {}

    void wake() override {
        const std::function<void(std::size_t)> nothing = [](std::size_t) {};
        team_.start(nothing);
        team_.join();
    }

    void move(const FileRange& range) override {
        std::atomic<std::size_t> next{0};
        const std::function<void(std::size_t)> take_blocks = [&](std::size_t) {
            for (;;) {
                const std::size_t from = next.fetch_add(block_);
                if (from >= range.bytes) return;
                move_block(range, from, std::min(block_, range.bytes - from));
            }
        };
        team_.start(take_blocks);
        try {
            take_blocks(0);
        } catch (...) {
            next = range.bytes;  // the others stop at their next block, before `range` is destroyed
            team_.wait();
            throw;
        }
        team_.wait();
    }

private:
    static void move_block(const FileRange& range, std::size_t from, std::size_t bytes) {
        if (range.writing) {
            write_fully(range.file, range.memory + from, bytes, range.at + from);
        } else {
            read_fully(range.file, range.memory + from, bytes, range.at + from);
        }
    }

    std::size_t block_;
    Team team_;
};

}  // namespace

std::unique_ptr<BlockIo> by_threads(const std::vector<int>& cpus, std::size_t depth,
                                    std::size_t block, std::size_t bytes) {
    const std::size_t blocks = std::max<std::size_t>((bytes + block - 1) / block, 1);
    return std::make_unique<ThreadedIo>(cpus, std::min(depth, blocks) - 1, block);
}

}  // namespace waywiser::host
