#include "nccl/communicators.hpp"

#include <algorithm>
#include <mutex>

#include "nccl/library.hpp"

namespace waywiser::nccl {
namespace {

struct Idle {
    std::mutex mutex;
    std::vector<std::shared_ptr<Communicators>> kept;
};

// Never destroyed: at the end of a process its GPUs' contexts may be gone.
Idle& idle() {
    static Idle& all = *new Idle();
    return all;
}

}  // namespace

Communicators::Communicators(std::vector<int> gpus) : gpus_(std::move(gpus)), all_(gpus_.size()) {
    check(functions().comm_init_all(all_.data(), static_cast<int>(gpus_.size()), gpus_.data()),
          "ncclCommInitAll");
}

Communicators::~Communicators() {
    for (const Communicator each : all_) functions().comm_destroy(each);
}

std::shared_ptr<Communicators> take_communicators(const std::vector<int>& gpus) {
    const std::lock_guard lock(idle().mutex);
    auto& kept = idle().kept;
    std::erase_if(kept,
                  [&](const auto& each) { return each.use_count() == 1 && each->gpus() != gpus; });
    const auto free = [&](const auto& each) {
        return each.use_count() == 1 && each->gpus() == gpus;
    };
    if (const auto found = std::ranges::find_if(kept, free); found != kept.end()) return *found;
    kept.push_back(std::make_shared<Communicators>(gpus));
    return kept.back();
}

void free_communicators() {
    const std::lock_guard lock(idle().mutex);
    std::erase_if(idle().kept, [](const auto& each) { return each.use_count() == 1; });
}

}  // namespace waywiser::nccl
