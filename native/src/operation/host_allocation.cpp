// The cost of allocating host memory: the call alone, and including its pages.
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/pages.hpp"
#include "operation/byte_choices.hpp"
#include "operation/timed.hpp"
#include "waywiser/huge_page.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kHeldBytes = std::size_t{64}
                                   << 20;  // maximum held by all repetitions of a sample
constexpr std::size_t kMostHeldBlocks = 1024;
constexpr std::size_t kSeveralHugePages = std::size_t{16} << 20;

void touch(void* data, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += host::page_bytes())
        static_cast<volatile char*>(data)[at] = 1;
}

struct AllocationMethod {
    const char* name;
    const char* description;
    const char* source;
    Parameter sizes;
    void* (*get)(std::size_t);
    void (*give_back)(void*, std::size_t);
    // Why allocation can fail.
    const char* remedy = "memory is exhausted";
};

void* mapped(std::size_t bytes, int flags = 0) {
    void* data =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
}
void unmap(void* data, std::size_t bytes) { munmap(data, bytes); }

// Of reserved huge pages, which are returned whole.
std::size_t reserved_page_bytes() {
    std::ifstream file("/proc/meminfo");
    for (std::string name; file >> name;) {
        std::size_t kib = 0;
        if (name == "Hugepagesize:" && file >> kib) return kib << 10;
    }
    return huge_page_bytes();
}
void unmap_reserved(void* data, std::size_t bytes) {
    static const std::size_t page = reserved_page_bytes();
    munmap(data, (bytes + page - 1) / page * page);
}

void* touched(void* data, std::size_t bytes) {
    if (data != nullptr) touch(data, bytes);
    return data;
}
void* advised(void* data, std::size_t bytes, int advice) {
    if (data != nullptr) madvise(data, bytes, advice);
    return data;
}

void release(void* data, std::size_t) { std::free(data); }
// Returns freed pages to the system, so that the next allocation gets untouched ones.
void release_pages(void* data, std::size_t) {
    std::free(data);
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

constexpr const char* kCommScope =
    "Pearson et al., Comm|Scope, ICPE 2019 (malloc, malloc + memset)";
constexpr const char* kTransparent = "Linux kernel, Transparent Hugepage Support";

// One huge page, and several of those that are small.
std::vector<std::string> huge_sizes() {
    const std::size_t page = huge_page_bytes();
    const std::set<std::size_t> sizes{page, std::max(page, kSeveralHugePages)};
    std::vector<std::string> found;
    for (const std::size_t bytes : sizes) found.push_back(std::to_string(bytes));
    return found;
}

std::vector<AllocationMethod> allocation_methods() {
    const Parameter sizes = byte_choices();
    const Parameter huge = byte_choices(huge_sizes());
    return {
        {"malloc", "malloc of a range, which is never touched", kCommScope, sizes,
         [](std::size_t bytes) { return std::malloc(bytes); }, release},
        {"malloc-touch", "malloc and the first write to each page", kCommScope, sizes,
         [](std::size_t bytes) { return touched(std::malloc(bytes), bytes); }, release_pages},
        {"mmap", "an anonymous mapping, which is never touched", "lmbench (lat_mmap)", sizes,
         [](std::size_t bytes) { return mapped(bytes); }, unmap},
        {"mmap-touch", "an anonymous mapping in base pages, and the first write to each",
         "lmbench (lat_mmap, lat_pagefault)", sizes,
         [](std::size_t bytes) {
             return touched(advised(mapped(bytes), bytes, MADV_NOHUGEPAGE), bytes);
         },
         unmap},
        {"mmap-huge-touch",
         "an anonymous mapping in transparent huge pages where the system has them, written "
         "throughout",
         kTransparent, huge,
         [](std::size_t bytes) {
             return touched(advised(mapped(bytes), bytes, MADV_HUGEPAGE), bytes);
         },
         unmap},
        {"mmap-hugetlb-touch", "a mapping in huge pages that were reserved, written throughout",
         "Linux kernel, HugeTLB Pages", huge,
         [](std::size_t bytes) { return touched(mapped(bytes, MAP_HUGETLB), bytes); },
         unmap_reserved, "no huge pages are reserved for it: see vm.nr_hugepages"},
    };
}

class AllocationTrial final : public Trial {
public:
    AllocationTrial(const AllocationMethod& method, std::size_t bytes)
        : method_(method), bytes_(bytes) {
        got_.reserve(most_repetitions());
    }

    double run(std::size_t repetitions) override {
        got_.assign(repetitions, nullptr);
        const double seconds = timed([this] {
            for (void*& data : got_) data = method_.get(bytes_);
        });
        const bool all = std::ranges::find(got_, nullptr) == got_.end();
        for (void* data : got_) {
            if (data != nullptr) method_.give_back(data, bytes_);
        }
        if (!all) {
            throw NotSupported(std::string(method_.name) + " got no " + std::to_string(bytes_) +
                               " bytes: " + method_.remedy);
        }
        return seconds;
    }
    [[nodiscard]] std::size_t most_repetitions() const override {
        return std::clamp<std::size_t>(kHeldBytes / bytes_, 1, kMostHeldBlocks);
    }

private:
    const AllocationMethod& method_;
    std::size_t bytes_;
    std::vector<void*> got_;
};

class HostAllocation final : public Operation {
public:
    explicit HostAllocation(AllocationMethod method)
        : method_(std::move(method)),
          info_{.name = method_.name,
                .description = method_.description,
                .parameters = {method_.sizes},
                .source = method_.source} {}

    [[nodiscard]] const Info& info() const override { return info_; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools&) const override {
        return std::make_unique<AllocationTrial>(method_, bytes_of(*this, call, machine));
    }

private:
    AllocationMethod method_;
    Info info_;
};

const bool registered = [] {
    for (const AllocationMethod& method : allocation_methods()) {
        Operations::instance().add(std::make_unique<HostAllocation>(method));
    }
    return true;
}();

}  // namespace
}  // namespace waywiser
