// Communicators of the GPUs of one process, kept from transfer to transfer: making them takes
// seconds.
#pragma once

#include <memory>
#include <vector>

#include "nccl/functions.hpp"

namespace waywiser::nccl {

// One communicator for each of several GPUs, all made together.
class Communicators {
public:
    explicit Communicators(std::vector<int> gpus);  // Throws Error.
    ~Communicators();
    Communicators(const Communicators&) = delete;
    Communicators& operator=(const Communicators&) = delete;

    [[nodiscard]] const std::vector<int>& gpus() const { return gpus_; }
    [[nodiscard]] Communicator of(std::size_t n) const { return all_[n]; }

private:
    std::vector<int> gpus_;
    std::vector<Communicator> all_;
};

// Communicators of these GPUs that no other result uses until the result ends. Those that were used
// last are kept for the same GPUs; others are freed first, for they hold memory of the GPUs. Any
// thread may call it. Throws Error.
std::shared_ptr<Communicators> take_communicators(const std::vector<int>& gpus);
// Frees those that are not in use.
void free_communicators();

}  // namespace waywiser::nccl
