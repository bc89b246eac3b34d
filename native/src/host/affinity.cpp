#include "affinity.hpp"

#include <sched.h>

#include <algorithm>
#include <memory>

namespace waywiser::host {
namespace {

constexpr int kMostCpus = 8192;  // more than any Linux kernel is built for

struct FreeSet {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using Set = std::unique_ptr<cpu_set_t, FreeSet>;

}  // namespace

std::vector<int> allowed_cpus() {
    const Set set(CPU_ALLOC(kMostCpus));
    const std::size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
    CPU_ZERO_S(bytes, set.get());
    std::vector<int> cpus;
    if (sched_getaffinity(0, bytes, set.get()) != 0) return cpus;
    const auto count = static_cast<std::size_t>(CPU_COUNT_S(bytes, set.get()));
    cpus.reserve(count);
    for (int cpu = 0; cpus.size() < count; ++cpu) {
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    }
    return cpus;
}

bool run_on(const std::vector<int>& cpus) {
    if (cpus.empty()) return false;
    const Set set(CPU_ALLOC(kMostCpus));
    const std::size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
    CPU_ZERO_S(bytes, set.get());
    for (const int cpu : cpus) {
        if (cpu >= 0 && cpu < kMostCpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set.get());
    }
    return sched_setaffinity(0, bytes, set.get()) == 0;
}

RunOn::RunOn(const std::vector<int>& cpus) {
    if (cpus.empty()) return;
    before_ = allowed_cpus();
    run_on(cpus);
}

RunOn::~RunOn() { run_on(before_); }

}  // namespace waywiser::host
