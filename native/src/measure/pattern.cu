#include "measure/pattern.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "host/parallel.hpp"
#include "measure/pattern_words.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::measure {
namespace {

constexpr gpu::Shape kShape{.blocks = 256, .threads = 256};

// How much of the bytes can be taken in words: nothing of a view that starts between two.
WAYWISER_BOTH inline std::size_t whole_words(const std::byte* data, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(data) % kWord == 0 ? bytes / kWord : 0;
}

struct Write {
    std::byte* data;
    std::size_t bytes;
    Word seed, flip;

    WAYWISER_DEVICE void operator()(gpu::Thread thread) const {
        auto* words = reinterpret_cast<Word*>(data);
        const std::size_t whole = whole_words(data, bytes);
        for (std::size_t i = thread.index; i < whole; i += thread.count) {
            words[i] = word_at(seed, i) ^ flip;
        }
        for (std::size_t i = whole * kWord + thread.index; i < bytes; i += thread.count) {
            data[i] = static_cast<std::byte>(byte_at(seed, flip, i));
        }
    }
};

struct Count {
    const std::byte* data;
    std::size_t bytes;
    Word seed;
    unsigned long long* count;
    unsigned long long* first;

    WAYWISER_DEVICE void operator()(gpu::Thread thread) const {
        const auto* words = reinterpret_cast<const Word*>(data);
        const std::size_t whole = whole_words(data, bytes);
        for (std::size_t i = thread.index; i < whole; i += thread.count) {
            if (words[i] != word_at(seed, i)) inspect(i * kWord, (i + 1) * kWord);
        }
        for (std::size_t i = whole * kWord + thread.index; i < bytes; i += thread.count) {
            inspect(i, i + 1);
        }
    }

    WAYWISER_DEVICE void inspect(std::size_t from, std::size_t to) const {
        for (std::size_t i = from; i < to; ++i) {
            if (static_cast<unsigned char>(data[i]) != byte_at(seed, 0, i)) {
                gpu::add(count, 1);
                gpu::lower(first, i);
            }
        }
    }
};

struct Reset {
    unsigned long long* count;
    unsigned long long* first;

    WAYWISER_DEVICE void operator()(gpu::Thread) const {
        *count = 0;
        *first = ~0ULL;
    }
};

// The GPU that can reach the bytes, or -1: then the CPU can. Where both can, the GPU is asked: it
// is faster, and some systems let the CPU read write-combined memory only at a crawl.
int reaching_gpu(const View& view, const Machine& machine) {
    if (view.memory->on_gpu()) return view.memory->place.index;
    const MemoryKind* kind = Memories::instance().find(view.memory->kind);
    if (kind == nullptr || !kind->needs_gpu() || machine.gpus.empty()) return -1;
    return machine.gpus.front().index;
}

// The address of the bytes for the kernels of the GPU that reaches them.
std::byte* address_for(const View& view, int gpu) {
    return view.memory->on_gpu() ? view.data : gpu::device_address(view.data, gpu);
}

void write(const View& view, Word seed, Word flip, const Machine& machine) {
    if (const int gpu = reaching_gpu(view, machine); gpu >= 0) {
        const gpu::Stream stream(gpu);
        gpu::launch(stream, kShape, Write{address_for(view, gpu), view.bytes, seed, flip});
        stream.synchronize();
        return;
    }
    host::parallel(view.bytes, machine.cpus(view.memory->place),
                   [&](std::size_t from, std::size_t to) {
                       std::size_t at = from;
                       for (; at + kWord <= to; at += kWord) {
                           const Word word = word_at(seed, at / kWord) ^ flip;
                           std::memcpy(view.data + at, &word, kWord);
                       }
                       for (; at < to; ++at)
                           view.data[at] = static_cast<std::byte>(byte_at(seed, flip, at));
                   });
}

Mismatch check_on_gpu(const View& view, Word seed, int gpu) {
    const gpu::Stream stream(gpu);
    const gpu::DeviceBuffer counters(gpu, 2 * sizeof(unsigned long long));
    auto* counts = reinterpret_cast<unsigned long long*>(counters.data());
    gpu::launch(stream, {}, Reset{counts, counts + 1});
    gpu::launch(stream, kShape,
                Count{address_for(view, gpu), view.bytes, seed, counts, counts + 1});
    stream.synchronize();
    // All wrong until told otherwise: the copy that brings the answer may be the one that fails.
    unsigned long long found[2] = {view.bytes, 0};
    gpu::copy_sync(found, counters.data(), sizeof found, gpu);
    return {.count = found[0], .first = found[0] == 0 ? 0 : found[1]};
}

Mismatch check_on_cpu(const View& view, Word seed, const std::vector<int>& cpus) {
    std::atomic<std::size_t> count = 0;
    std::atomic<std::size_t> first = std::numeric_limits<std::size_t>::max();
    host::parallel(view.bytes, cpus, [&](std::size_t from, std::size_t to) {
        for (std::size_t at = from; at < to;) {
            Word word = 0;
            const std::size_t some = std::min(kWord, to - at);
            std::memcpy(&word, view.data + at, some);
            if (some < kWord || word != word_at(seed, at / kWord)) {
                for (std::size_t i = at; i < at + some; ++i) {
                    if (std::to_integer<unsigned char>(view.data[i]) == byte_at(seed, 0, i))
                        continue;
                    ++count;
                    for (auto now = first.load();
                         i < now && !first.compare_exchange_weak(now, i);) {
                    }
                }
            }
            at += some;
        }
    });
    return {.count = count, .first = count == 0 ? 0 : first.load()};
}

}  // namespace

void fill(const View& view, std::uint64_t seed, const Machine& machine) {
    write(view, seed, 0, machine);
}

void poison(const View& view, std::uint64_t seed, const Machine& machine) {
    write(view, seed, ~Word{0}, machine);
}

Mismatch check(const View& view, std::uint64_t seed, const Machine& machine) {
    if (const int gpu = reaching_gpu(view, machine); gpu >= 0) return check_on_gpu(view, seed, gpu);
    return check_on_cpu(view, seed, machine.cpus(view.memory->place));
}

}  // namespace waywiser::measure
