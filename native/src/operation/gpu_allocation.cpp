// The cost of allocating and freeing GPU memory: plain, stream-ordered, or managed.
#include <memory>
#include <utility>

#include "gpu/gpu.hpp"
#include "operation/byte_choices.hpp"
#include "operation/create_release.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kMostAllocations = 64;

class DeviceTrial final : public Trial {
public:
    DeviceTrial(Phase phase, std::size_t bytes, const gpu::Stream& stream)
        : phase_(phase), bytes_(bytes), gpu_(stream.device()) {}
    double run(std::size_t repetitions) override {
        return seconds_of<gpu::DeviceBuffer>(phase_, repetitions, gpu_, bytes_);
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostAllocations; }

private:
    Phase phase_;
    std::size_t bytes_;
    int gpu_;
};

// Stream-ordered allocation: freed memory stays in the pool, which the device keeps.
class PoolTrial final : public Trial {
public:
    PoolTrial(Phase phase, std::size_t bytes, const gpu::Stream& stream)
        : phase_(phase), bytes_(bytes), stream_(stream) {}
    double run(std::size_t repetitions) override {
        static_cast<void>(allocate_and_free());  // the pool holds enough from now on
        double seconds = 0;
        for (std::size_t i = 0; i < repetitions; ++i) seconds += allocate_and_free();
        stream_.synchronize();
        return seconds;
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostAllocations; }

private:
    [[nodiscard]] double allocate_and_free() const {
        std::byte* data = nullptr;
        const double create_seconds = timed([&] { data = gpu::allocate_async(bytes_, stream_); });
        const double release_seconds = timed([&] { gpu::free_async(data, stream_); });
        return phase_ == Phase::create ? create_seconds : release_seconds;
    }

    Phase phase_;
    std::size_t bytes_;
    const gpu::Stream& stream_;
};

class ManagedTrial final : public Trial {
public:
    ManagedTrial(Phase phase, std::size_t bytes, const gpu::Stream& stream)
        : phase_(phase), bytes_(bytes), gpu_(stream.device()) {}
    double run(std::size_t repetitions) override {
        return seconds_of<gpu::ManagedBuffer>(phase_, repetitions, bytes_, gpu_);
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostAllocations; }

private:
    Phase phase_;
    std::size_t bytes_;
    int gpu_;
};

struct AllocationCall {
    Phase phase;
    const char* name;
    const char* description;
    const char* source;
};

template <class Made>
class GpuAllocation final : public Operation {
public:
    explicit GpuAllocation(const AllocationCall& call)
        : phase_(call.phase),
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
        return std::make_unique<Made>(phase_, bytes_of(*this, call, machine),
                                      tools.stream(call.place.index, 0));
    }

private:
    Phase phase_;
    Info info_;
};

constexpr const char* kRuntime = "CUDA runtime API (cudaMalloc, cudaFree)";
constexpr const char* kPool = "CUDA programming guide (stream-ordered memory allocator)";
constexpr const char* kManaged = "Comm|Scope 0.12 (cudaMallocManaged)";

const bool registered = [] {
    auto& operations = Operations::instance();
    const auto add = [&]<class Made>(std::in_place_type_t<Made>, const AllocationCall& call) {
        operations.add(std::make_unique<GpuAllocation<Made>>(call));
    };
    constexpr std::in_place_type_t<DeviceTrial> at_once;
    constexpr std::in_place_type_t<PoolTrial> from_pool;
    constexpr std::in_place_type_t<ManagedTrial> managed;
    add(at_once, {Phase::create, "device-malloc", "allocating device memory", kRuntime});
    add(at_once,
        {Phase::release, "device-free",
         "freeing device memory, which waits until the device is idle: here it is", kRuntime});
    add(from_pool, {Phase::create, "device-malloc-async",
                    "allocating in the order of a stream, from a pool that holds enough", kPool});
    add(from_pool, {Phase::release, "device-free-async",
                    "giving memory back to its pool in the order of a stream", kPool});
    add(managed, {Phase::create, "managed-malloc",
                  "allocating managed memory, which has no pages yet", kManaged});
    add(managed, {Phase::release, "managed-free",
                  "freeing managed memory of which no page was touched", kManaged});
    return true;
}();

}  // namespace
}  // namespace waywiser
