#include "measure/exchange_bytes.hpp"

#include <cstring>
#include <vector>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "measure/pattern_words.hpp"

namespace waywiser::measure {
namespace {

constexpr gpu::Shape kAllThreads{.blocks = 256, .threads = 256};
constexpr std::size_t kNumber = sizeof(std::uint32_t);
constexpr int kBits = 8;
// Between the seeds of two sources; the seeds of two slices of a buffer differ by less.
constexpr Word kSourcesApart = Word{1} << 32;
constexpr std::uint32_t kWhole = 0xFFFF;

using Element = Exchange::Element;

// The bits of a float without a call that only one of host and device has.
WAYWISER_BOTH inline std::uint32_t bits_of(float value) {
    std::uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The n-th number of a source.
WAYWISER_BOTH inline std::uint32_t number_of(Word seed, std::size_t n) {
    return static_cast<std::uint32_t>(word_at(seed, n / 2) >> (n % 2 * kNumber * kBits));
}

// What a destination holds after an arrival.
struct Expected {
    Element element = Element::int32;
    Word seed = 0;            // of the first source
    std::size_t sources = 1;  // that are summed
    std::size_t from = 0;     // offset in the sources

    // The byte at an offset of the arrival.
    WAYWISER_BOTH unsigned char at(std::size_t offset) const {
        const std::size_t n = (from + offset) / kNumber;
        std::uint32_t sum = 0;
        for (std::size_t source = 0; source < sources; ++source) {
            const std::uint32_t number = number_of(seed + source * kSourcesApart, n);
            sum += element == Element::int32 ? number : (number & kWhole);
        }
        // Below 2^24: exact as a float.
        if (element != Element::int32) sum = bits_of(static_cast<float>(sum));
        return static_cast<unsigned char>(sum >> ((from + offset) % kNumber * kBits));
    }
};

struct WriteExpected {
    std::byte* data;
    std::size_t bytes;
    Expected expected;
    unsigned char flip;

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        for (auto i = thread.index; i < bytes; i += thread.count) {
            data[i] = static_cast<std::byte>(expected.at(i) ^ flip);
        }
    }
};

struct CountOthers {
    const std::byte* data;
    std::size_t bytes;
    std::size_t at;  // offset of the first in the destination
    Expected expected;
    unsigned long long* count;
    unsigned long long* first;

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        unsigned long long wrong = 0;
        std::size_t lowest = 0;
        for (auto i = thread.index; i < bytes; i += thread.count) {
            if (static_cast<unsigned char>(data[i]) == expected.at(i)) continue;
            if (wrong == 0) lowest = at + i;
            ++wrong;
        }
        if (wrong == 0) return;
        gpu::add(count, wrong);
        gpu::lower(first, lowest);
    }
};

struct ResetCounts {
    unsigned long long* count;
    unsigned long long* first;

    WAYWISER_ON_GPU void operator()(gpu::Thread) const {
        *count = 0;
        *first = ~0ULL;
    }
};

// The n-th of several buffers, whose memories are `all`.
View of_one(const View& view, const std::vector<Memory>& all, std::size_t n) {
    return {.data = view.each[n] + view.offset, .memory = &all[n]};
}

Expected expected(const Exchange& exchange, const Exchange::Arrival& arrival, Word seed,
                  std::size_t sources) {
    if (!arrival.source) return {exchange.element, seed, sources, arrival.from};
    return {exchange.element, seed + *arrival.source * kSourcesApart, 1, arrival.from};
}

// Counts the wrong bytes of one destination.
class Counter {
public:
    explicit Counter(int gpu)
        : stream_(gpu),
          counters_(gpu, 2 * sizeof(unsigned long long)),
          counts_(reinterpret_cast<unsigned long long*>(counters_.data())) {
        gpu::launch(stream_, {}, ResetCounts{counts_, counts_ + 1});
    }
    void add(const std::byte* data, const Exchange::Arrival& arrival, const Expected& expected) {
        gpu::launch(stream_, kAllThreads,
                    CountOthers{data, arrival.bytes, arrival.to, expected, counts_, counts_ + 1});
        bytes_ += arrival.bytes;
    }
    [[nodiscard]] Mismatch found() const {
        stream_.synchronize();
        // All wrong by default: the copy of the result may be what fails.
        unsigned long long found[2] = {bytes_, 0};
        gpu::copy_sync(found, counters_.data(), sizeof found, stream_.device());
        return {.count = found[0], .first = found[0] == 0 ? 0 : found[1]};
    }

private:
    gpu::Stream stream_;
    gpu::DeviceBuffer counters_;
    unsigned long long* counts_;
    std::size_t bytes_ = 0;
};

}  // namespace

void fill_source(const View& source, const Exchange& exchange, std::uint64_t seed, std::size_t n) {
    const gpu::Stream stream(source.memory->place.index);
    gpu::launch(stream, kAllThreads,
                WriteExpected{source.data, exchange.source_bytes,
                              Expected{exchange.element, seed + n * kSourcesApart}, 0});
    stream.synchronize();
}

void poison_destination(const View& destination, const Exchange& exchange, std::uint64_t seed,
                        std::size_t n, std::size_t sources) {
    const gpu::Stream stream(destination.memory->place.index);
    for (const Exchange::Arrival& arrival : exchange.arrivals) {
        if (arrival.destination != n) continue;
        gpu::launch(stream, kAllThreads,
                    WriteExpected{destination.data + arrival.to, arrival.bytes,
                                  expected(exchange, arrival, seed, sources), 0xFF});
    }
    stream.synchronize();
}

Mismatch check_source(const View& source, const Exchange& exchange, std::uint64_t seed,
                      std::size_t n) {
    Counter counter(source.memory->place.index);
    const Exchange::Arrival whole{.destination = 0, .source = n, .bytes = exchange.source_bytes};
    counter.add(source.data, whole, Expected{exchange.element, seed + n * kSourcesApart});
    return counter.found();
}

Mismatch check_destination(const View& destination, const Exchange& exchange, std::uint64_t seed,
                           std::size_t n, std::size_t sources) {
    Counter counter(destination.memory->place.index);
    for (const Exchange::Arrival& arrival : exchange.arrivals) {
        if (arrival.destination != n) continue;
        counter.add(destination.data + arrival.to, arrival,
                    expected(exchange, arrival, seed, sources));
    }
    return counter.found();
}

void fill_sources(const View& sources, const Exchange& exchange, std::uint64_t seed) {
    const std::vector<Memory> all = sources.memory->each();
    for (std::size_t n = 0; n < all.size(); ++n) {
        fill_source(of_one(sources, all, n), exchange, seed, n);
    }
}

void poison_destinations(const View& destinations, const Exchange& exchange, std::uint64_t seed) {
    const std::vector<Memory> all = destinations.memory->each();
    for (std::size_t n = 0; n < all.size(); ++n) {
        poison_destination(of_one(destinations, all, n), exchange, seed, n, all.size());
    }
}

WrongArrival check_destinations(const View& destinations, const Exchange& exchange,
                                std::uint64_t seed) {
    const std::vector<Memory> all = destinations.memory->each();
    for (std::size_t n = 0; n < all.size(); ++n) {
        const Mismatch wrong =
            check_destination(of_one(destinations, all, n), exchange, seed, n, all.size());
        if (wrong.count > 0) return {wrong, all[n].place};
    }
    return {};
}

}  // namespace waywiser::measure
