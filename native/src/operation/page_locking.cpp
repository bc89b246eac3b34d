// The cost of page-locking host memory for GPUs, and of unlocking it.
#include <memory>
#include <optional>

#include "gpu/gpu.hpp"
#include "host/pages.hpp"
#include "operation/byte_choices.hpp"
#include "operation/create_release.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kMostLockings = 64;

class RegistrationTrial final : public Trial {
public:
    // Pages are locked for every GPU on which the process has a context: create one on all of them,
    // so that the cost does not depend on earlier measurements.
    RegistrationTrial(Phase phase, const NumaNode& node, std::size_t bytes, const Machine& machine)
        : phase_(phase),
          pages_(bytes, node, host::PageSize::standard),
          gpu_(machine.gpus.front().index) {
        for (const GpuPlace& gpu : machine.gpus) gpu::synchronize_device(gpu.index);
    }

    double run(std::size_t repetitions) override {
        return seconds_of<gpu::Registration>(phase_, repetitions, pages_.data(), pages_.bytes(),
                                             gpu_);
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostLockings; }

private:
    Phase phase_;
    host::Pages pages_;
    int gpu_;
};

class PageLocking final : public Operation {
public:
    PageLocking(Phase phase, const char* name, const char* description)
        : phase_(phase),
          info_{.name = name,
                .description = description,
                .parameters = {byte_choices()},
                .source = "CUDA runtime API (cudaHostRegister, cudaHostUnregister)"} {}

    [[nodiscard]] const Info& info() const override { return info_; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const OperationCall&, const Machine& machine) const override {
        if (machine.gpus.empty()) return "pages are locked for a GPU and none is shown";
        return std::nullopt;
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools&) const override {
        return std::make_unique<RegistrationTrial>(phase_, *machine.node(call.place.index),
                                                   bytes_of(*this, call, machine), machine);
    }

private:
    Phase phase_;
    Info info_;
};

const bool registered = [] {
    auto& operations = Operations::instance();
    operations.add(std::make_unique<PageLocking>(
        Phase::create, "host-register",
        "locking base pages that are there already, for all GPUs that are measured"));
    operations.add(std::make_unique<PageLocking>(Phase::release, "host-unregister",
                                                 "unlocking pages, which stay where they are"));
    return true;
}();

}  // namespace
}  // namespace waywiser
