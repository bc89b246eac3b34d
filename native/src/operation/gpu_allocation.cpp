// The cost of allocating and freeing GPU memory: plain, stream-ordered, or managed.
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

// Stream-ordered allocation: freed memory stays in the pool, which the device keeps.
class PoolTrial final : public Trial {
public:
    PoolTrial(Half half, std::size_t bytes, const gpu::Stream& stream)
        : half_(half), bytes_(bytes), stream_(stream) {}
    double run(std::size_t repetitions) override {
        static_cast<void>(there_and_back());  // the pool holds enough from now on
        double seconds = 0;
        for (std::size_t i = 0; i < repetitions; ++i) seconds += there_and_back();
        stream_.synchronize();
        return seconds;
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostRepetitions; }

private:
    [[nodiscard]] double there_and_back() const {
        std::byte* data = nullptr;
        const double making = timed([&] { data = gpu::allocate_async(bytes_, stream_); });
        const double giving_back = timed([&] { gpu::free_async(data, stream_); });
        return half_ == Half::making ? making : giving_back;
    }

    Half half_;
    std::size_t bytes_;
    const gpu::Stream& stream_;
};

class ManagedTrial final : public Trial {
public:
    ManagedTrial(Half half, std::size_t bytes, const gpu::Stream& stream)
        : half_(half), bytes_(bytes), gpu_(stream.device()) {}
    double run(std::size_t repetitions) override {
        return seconds_of<gpu::ManagedBuffer>(half_, repetitions, bytes_, gpu_);
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
constexpr const char* kPool = "CUDA programming guide (stream-ordered memory allocator)";
constexpr const char* kManaged = "Comm|Scope 0.12 (cudaMallocManaged)";

const bool registered = [] {
    auto& operations = Operations::instance();
    const auto add = [&]<class Made>(std::in_place_type_t<Made>, const Call& call) {
        operations.add(std::make_unique<GpuAllocation<Made>>(call));
    };
    constexpr std::in_place_type_t<DeviceTrial> at_once;
    constexpr std::in_place_type_t<PoolTrial> from_pool;
    constexpr std::in_place_type_t<ManagedTrial> managed;
    add(at_once, {Half::making, "device-malloc", "allocating device memory", kRuntime});
    add(at_once,
        {Half::giving_back, "device-free",
         "freeing device memory, which waits until the device is idle: here it is", kRuntime});
    add(from_pool, {Half::making, "device-malloc-async",
                    "allocating in the order of a stream, from a pool that holds enough", kPool});
    add(from_pool, {Half::giving_back, "device-free-async",
                    "giving memory back to its pool in the order of a stream", kPool});
    add(managed, {Half::making, "managed-malloc",
                  "allocating managed memory, which has no pages yet", kManaged});
    add(managed, {Half::giving_back, "managed-free",
                  "freeing managed memory of which nobody touched a page", kManaged});
    return true;
}();

}  // namespace
}  // namespace waywiser
