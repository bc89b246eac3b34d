// What it costs to get memory of the host: the call alone, and with the pages behind it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#include "host/clock.hpp"
#include "operation/byte_choices.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kHeldBytes = std::size_t{64} << 20;  // by all repetitions of a sample
constexpr std::size_t kMostRepetitions = 1024;

void touch(void* data, std::size_t bytes) {
    static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(data)[at] = 1;
}

struct Way {
    const char* name;
    const char* description;
    const char* source;
    void* (*get)(std::size_t);
    void (*give_back)(void*, std::size_t);
};

void* mapped(std::size_t bytes, int advice) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    madvise(data, bytes, advice);
    touch(data, bytes);
    return data;
}
void unmap(void* data, std::size_t bytes) { munmap(data, bytes); }
void release(void* data, std::size_t) { std::free(data); }

constexpr const char* kCommScope =
    "Pearson et al., Comm|Scope, ICPE 2019 (malloc, malloc + memset)";

const Way kWays[] = {
    {"malloc", "malloc of a range, which nobody touches", kCommScope,
     [](std::size_t bytes) { return std::malloc(bytes); }, release},
    {"malloc-touch", "malloc and the first write to each page", kCommScope,
     [](std::size_t bytes) {
         void* data = std::malloc(bytes);
         if (data != nullptr) touch(data, bytes);
         return data;
     },
     release},
    {"mmap-touch", "an anonymous mapping in base pages, and the first write to each", kCommScope,
     [](std::size_t bytes) { return mapped(bytes, MADV_NOHUGEPAGE); }, unmap},
    {"mmap-huge-touch", "an anonymous mapping in transparent huge pages, written throughout",
     kCommScope, [](std::size_t bytes) { return mapped(bytes, MADV_HUGEPAGE); }, unmap},
};

class AllocationTrial final : public Trial {
public:
    AllocationTrial(const Way& way, std::size_t bytes) : way_(way), bytes_(bytes) {}

    double run(std::size_t repetitions) override {
        got_.assign(repetitions, nullptr);
        const double start = host::now();
        for (void*& data : got_) data = way_.get(bytes_);
        const double seconds = host::now() - start;
        const bool all = std::ranges::find(got_, nullptr) == got_.end();
        for (void* data : got_) {
            if (data != nullptr) way_.give_back(data, bytes_);
        }
        if (!all) throw std::bad_alloc();
        return seconds;
    }
    [[nodiscard]] std::size_t most_repetitions() const override {
        return std::clamp<std::size_t>(kHeldBytes / bytes_, 1, kMostRepetitions);
    }

private:
    const Way& way_;
    std::size_t bytes_;
    std::vector<void*> got_;
};

class HostAllocation final : public Operation {
public:
    explicit HostAllocation(const Way& way)
        : way_(way),
          info_{.name = way.name,
                .description = way.description,
                .parameters = {byte_choices()},
                .source = way.source} {}

    [[nodiscard]] const Info& info() const override { return info_; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools&) const override {
        return std::make_unique<AllocationTrial>(way_, bytes_of(*this, call, machine));
    }

private:
    const Way& way_;
    Info info_;
};

const bool registered = [] {
    for (const Way& way : kWays) {
        Operations::instance().add(std::make_unique<HostAllocation>(way));
    }
    return true;
}();

}  // namespace
}  // namespace waywiser
