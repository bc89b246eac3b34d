// What it costs to get and give back memory of a GPU, and to lock pages of the host for it.
#include <memory>
#include <optional>

#include "gpu/gpu.hpp"
#include "host/clock.hpp"
#include "host/pages.hpp"
#include "operation/byte_choices.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kMostRepetitions = 64;

double timed(const auto& call) {
    const double start = host::now();
    call();
    return host::now() - start;
}

enum class Half { getting, giving_back };

// Makes something and gives it back, so many times; seconds of the one half or the other.
template <class Resource>
double seconds_of(Half half, std::size_t repetitions, const auto&... made_of) {
    double seconds = 0;
    for (std::size_t i = 0; i < repetitions; ++i) {
        std::optional<Resource> resource;
        const double getting = timed([&] { resource.emplace(made_of...); });
        const double giving_back = timed([&] { resource.reset(); });
        seconds += half == Half::getting ? getting : giving_back;
    }
    return seconds;
}

class DeviceTrial final : public Trial {
public:
    DeviceTrial(Half half, int gpu, std::size_t bytes) : half_(half), gpu_(gpu), bytes_(bytes) {}

    double run(std::size_t repetitions) override {
        return seconds_of<gpu::DeviceBuffer>(half_, repetitions, gpu_, bytes_);
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostRepetitions; }

private:
    Half half_;
    int gpu_;
    std::size_t bytes_;
};

class RegistrationTrial final : public Trial {
public:
    RegistrationTrial(Half half, const NumaNode& node, std::size_t bytes)
        : half_(half), pages_(bytes, node, host::PageSize::standard) {}

    double run(std::size_t repetitions) override {
        return seconds_of<gpu::Registration>(half_, repetitions, pages_.data(), pages_.bytes());
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostRepetitions; }

private:
    Half half_;
    host::Pages pages_;
};

class DeviceAllocation final : public Operation {
public:
    DeviceAllocation(Half half, const char* name, const char* description)
        : half_(half),
          info_{.name = name,
                .description = description,
                .parameters = {byte_choices()},
                .source = "Comm|Scope 0.12; CUDA runtime API (cudaMalloc, cudaFree)"} {}

    [[nodiscard]] const Info& info() const override { return info_; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools&) const override {
        return std::make_unique<DeviceTrial>(half_, call.place.index,
                                             bytes_of(*this, call, machine));
    }

private:
    Half half_;
    Info info_;
};

class PageLocking final : public Operation {
public:
    PageLocking(Half half, const char* name, const char* description)
        : half_(half),
          info_{.name = name,
                .description = description,
                .parameters = {byte_choices()},
                .source = "CUDA runtime API (cudaHostRegister, cudaHostUnregister)"} {}

    [[nodiscard]] const Info& info() const override { return info_; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] std::optional<std::string> refusal(const OperationCall&,
                                                     const Machine& machine) const override {
        if (machine.gpus.empty()) return "pages are locked for a GPU and none is shown";
        return std::nullopt;
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools&) const override {
        return std::make_unique<RegistrationTrial>(half_, *machine.node(call.place.index),
                                                   bytes_of(*this, call, machine));
    }

private:
    Half half_;
    Info info_;
};

const bool registered = [] {
    auto& operations = Operations::instance();
    operations.add(std::make_unique<DeviceAllocation>(Half::getting, "device-malloc",
                                                      "allocating device memory"));
    operations.add(std::make_unique<DeviceAllocation>(Half::giving_back, "device-free",
                                                      "freeing device memory"));
    operations.add(std::make_unique<PageLocking>(Half::getting, "host-register",
                                                 "locking pages that are there already"));
    operations.add(
        std::make_unique<PageLocking>(Half::giving_back, "host-unregister", "unlocking pages"));
    return true;
}();

}  // namespace
}  // namespace waywiser
