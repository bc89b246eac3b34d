// What it costs to get and give back memory of a GPU: at once, in the order of a stream, or
// managed.
#include <memory>
#include <utility>

#include "gpu/gpu.hpp"
#include "operation/byte_choices.hpp"
#include "operation/halves.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kMostRepetitions = 64;

class DeviceTrial final : public Trial {
public:
    DeviceTrial(Half half, std::size_t bytes, const gpu::Stream& stream)
        : half_(half), bytes_(bytes), gpu_(stream.device()) {}
    double run(std::size_t repetitions) override {
        return seconds_of<gpu::DeviceBuffer>(half_, repetitions, gpu_, bytes_);
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostRepetitions; }

private:
    Half half_;
    std::size_t bytes_;
    int gpu_;
};

struct Call {
    Half half;
    const char* name;
    const char* description;
    const char* source;
};

template <class Made>
class GpuAllocation final : public Operation {
public:
    explicit GpuAllocation(const Call& call)
        : half_(call.half),
          info_{.name = call.name,
                .description = call.description,
                .parameters = {byte_choices()},
                .source = call.source} {}

    [[nodiscard]] const Info& info() const override { return info_; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools& tools) const override {
        return std::make_unique<Made>(half_, bytes_of(*this, call, machine),
                                      tools.stream(call.place.index, 0));
    }

private:
    Half half_;
    Info info_;
};

constexpr const char* kRuntime = "CUDA runtime API (cudaMalloc, cudaFree)";

const bool registered = [] {
    auto& operations = Operations::instance();
    const auto add = [&]<class Made>(std::in_place_type_t<Made>, const Call& call) {
        operations.add(std::make_unique<GpuAllocation<Made>>(call));
    };
    constexpr std::in_place_type_t<DeviceTrial> at_once;
    add(at_once, {Half::making, "device-malloc", "allocating device memory", kRuntime});
    add(at_once,
        {Half::giving_back, "device-free",
         "freeing device memory, which waits until the device is idle: here it is", kRuntime});
    return true;
}();

}  // namespace
}  // namespace waywiser
