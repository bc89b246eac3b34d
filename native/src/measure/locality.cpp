#include "measure/locality.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>

#include "host/affinity.hpp"
#include "host/cache.hpp"
#include "host/clock.hpp"
#include "host/pages.hpp"
#include "measure/interval.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::measure {
namespace {

constexpr std::size_t kCopyBytes = 8;
constexpr std::size_t kCopies = 9;  // per round and GPU; odd, so that the median is one of them
constexpr std::size_t kRounds = 3;  // for a buffer of a series

// A chase within one window stays within the second-level TLB, so that a load measures memory
// latency and not a page-table walk.
constexpr std::size_t kWindow = std::size_t{1} << 20;
constexpr std::size_t kApart = 256;  // bytes between two cells, more than prefetchers cover
constexpr std::size_t kLinks = 1024;
constexpr std::uint64_t kSeed = 1;  // of the order; a constant makes it repeatable

double median(std::vector<double> values) { return median_interval(std::move(values)).median; }

// Pieces of a block start at pages.
std::size_t piece(std::size_t bytes, std::size_t n, std::size_t pieces) {
    return bytes / pieces * n / host::page_bytes() * host::page_bytes();
}

// Windows of a block, each with its cells linked into one cycle in random order.
class Windows {
public:
    Windows(std::byte* data, std::size_t bytes, std::size_t windows)
        : data_(data),
          window_(std::min(bytes, kWindow)),
          count_(std::max<std::size_t>(windows, 1)) {
        count_ = std::clamp<std::size_t>(bytes / window_, 1, count_);
        stride_ = piece(bytes, 1, count_);
        for (std::size_t n = 0; n < count_; ++n) link(at(n));
    }

    // Seconds of one uncached load from the CPU that this thread runs on.
    double read(std::size_t n) {
        std::byte* window = at(n % count_);
        host::flush(window, window_, {});
        touch_pages(window);
        const Cell* cell = reinterpret_cast<const Cell*>(window);
        const std::size_t links = std::min(kLinks, window_ / kApart);
        const double start = host::now();
        for (std::size_t i = 0; i < links; ++i) cell = cell->next;
        const double seconds = host::now() - start;
        last_ = cell;
        return seconds / static_cast<double>(links);
    }

private:
    struct Cell {
        const Cell* next;
    };

    [[nodiscard]] std::byte* at(std::size_t n) const { return data_ + n * stride_; }

    void link(std::byte* window) const {
        const std::size_t cells = std::max<std::size_t>(window_ / kApart, 2);
        std::vector<std::size_t> order(cells - 1);
        std::iota(order.begin(), order.end(), std::size_t{1});
        std::shuffle(order.begin(), order.end(), std::mt19937_64(kSeed));
        order.insert(order.begin(), 0);  // where every chase starts
        const auto cell = [&](std::size_t i) {
            return reinterpret_cast<Cell*>(window + order[i % cells] * kApart);
        };
        for (std::size_t i = 0; i < cells; ++i) cell(i)->next = cell(i + 1);
    }

    // Reads a line of each page that contains no cell and is not prefetched with one.
    void touch_pages(const std::byte* window) {
        unsigned sum = 0;
        for (std::size_t offset = kApart / 2; offset < window_; offset += host::page_bytes()) {
            sum += std::to_integer<unsigned>(window[offset]);
        }
        touched_ = sum;
    }

    std::byte* data_;
    std::size_t window_;
    std::size_t count_;
    std::size_t stride_ = 0;
    const Cell* volatile last_ = nullptr;  // so that the compiler keeps the loads
    volatile unsigned touched_ = 0;
};

std::vector<std::unique_ptr<Buffer>> allocate(const LocalityRequest& request,
                                              const Machine& machine) {
    const MemoryKind* kind = Memories::instance().find(request.memory.kind);
    if (kind == nullptr) throw NotSupported("there is no memory '" + request.memory.kind + "'");
    if (machine.node(request.memory.place.index) == nullptr || !request.memory.on_host()) {
        throw NotSupported("this machine has no " + request.memory.place.text());
    }
    if (auto reason = kind->unsupported_reason(request.memory, machine))
        throw NotSupported(*reason);
    std::vector<std::unique_ptr<Buffer>> blocks;
    for (std::size_t n = 0; n < request.blocks; ++n) {
        blocks.push_back(kind->allocate(request.memory, request.bytes, machine));
    }
    return blocks;
}

// Visits all blocks, each round in another order, so that changes over time do not depend on the
// block.
std::vector<std::size_t> shuffled_blocks(std::size_t blocks, std::size_t round) {
    std::vector<std::size_t> order(blocks);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(kSeed + round));
    return order;
}

// Each round reads all blocks from one CPU before the next CPU, so that drift affects all blocks
// equally.
void time_copies(const LocalityRequest& request, const std::vector<std::unique_ptr<Buffer>>& blocks,
                 SmallCopies& copies, LocalityOutcome& outcome) {
    outcome.gpus = copies.gpus();
    for (std::size_t r = 0; r < request.rounds; ++r) {
        const host::RunOn there(request.cpus.empty()
                                    ? std::vector<int>{}
                                    : std::vector<int>{request.cpus[r % request.cpus.size()]});
        for (const std::size_t b : shuffled_blocks(blocks.size(), r)) {
            const std::size_t offset = piece(blocks[b]->bytes(), r, request.rounds);
            outcome.blocks[b].copies.push_back(copies.round(blocks[b]->data() + offset));
        }
    }
}

void time_reads(const LocalityRequest& request, const std::vector<std::unique_ptr<Buffer>>& blocks,
                double start, LocalityOutcome& outcome) {
    std::vector<Windows> windows;
    windows.reserve(blocks.size());
    for (const auto& block : blocks) {
        windows.emplace_back(block->data(), block->bytes(), request.sweeps);
    }
    for (std::size_t s = 0; s < request.sweeps; ++s) {
        if (s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(request.pause));
        outcome.sweeps.push_back(host::now() - start);
        for (BlockLocality& block : outcome.blocks) block.reads.emplace_back();
        for (const int cpu : request.cpus) {
            const host::RunOn there({cpu});
            for (const std::size_t b : shuffled_blocks(blocks.size(), s)) {
                outcome.blocks[b].reads.back().push_back(windows[b].read(s));
            }
        }
    }
}

}  // namespace

SmallCopies::SmallCopies(const Machine& machine, Streams& streams) {
    for (const GpuPlace& gpu : machine.gpus) {
        gpus_.push_back(gpu.index);
        targets_.push_back({&streams.get(gpu.index, 0), gpu::DeviceBuffer(gpu.index, kCopyBytes)});
    }
}

std::vector<double> SmallCopies::round(const std::byte* host) {
    std::vector<double> seconds;
    for (Target& target : targets_) {
        std::vector<double> taken;
        for (std::size_t n = 0; n < kCopies; ++n) {
            const double start = host::now();
            gpu::copy_async(target.buffer.data(), host, kCopyBytes, *target.stream);
            target.stream->synchronize();
            taken.push_back(host::now() - start);
        }
        seconds.push_back(median(std::move(taken)));
    }
    return seconds;
}

std::vector<double> SmallCopies::all(const std::byte* host, std::size_t bytes) {
    std::vector<std::vector<double>> rounds;
    for (std::size_t r = 0; r < kRounds; ++r) {
        rounds.push_back(round(host + piece(bytes, r, kRounds)));
    }
    std::vector<double> medians;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
        std::vector<double> own;
        for (const auto& one : rounds) own.push_back(one[g]);
        medians.push_back(median(std::move(own)));
    }
    return medians;
}

std::vector<double> BufferSides::of(const std::shared_ptr<Buffer>& buffer, const Memory& memory) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    if (machine_.gpus.size() < 2 || buffer == nullptr || kind == nullptr || !kind->page_locked() ||
        !memory.on_host() || buffer->bytes() < kCopyBytes) {
        return {};
    }
    std::erase_if(known_, [](const auto& entry) { return entry.first.expired(); });
    if (const auto found = known_.find(buffer); found != known_.end()) return found->second;
    if (!copies_) copies_ = std::make_unique<SmallCopies>(machine_, streams_);
    return known_.emplace(buffer, copies_->all(buffer->data(), buffer->bytes())).first->second;
}

LocalityOutcome locality(const LocalityRequest& request, const Machine& machine, Streams& streams) {
    const double start = host::now();
    const MemoryKind* kind = Memories::instance().find(request.memory.kind);
    LocalityOutcome outcome;
    const auto blocks = allocate(request, machine);
    outcome.cpus = request.cpus;
    for (const auto& block : blocks) outcome.blocks.push_back({block->placement(), {}, {}});
    if (kind->page_locked() && !machine.gpus.empty()) {
        SmallCopies copies(machine, streams);
        for (const auto& block : blocks)
            (void)copies.round(block->data());  // the first round maps the pages
        time_copies(request, blocks, copies, outcome);
    }
    if (!host::flush_instruction().empty()) time_reads(request, blocks, start, outcome);
    outcome.seconds = host::now() - start;
    return outcome;
}

}  // namespace waywiser::measure
