// The cost of calls that start work on a GPU and wait for it.
#include <memory>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "operation/timed.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

// A stream takes about a thousand entries before it blocks the host.
constexpr std::size_t kMostCalls = 256;

struct Nothing {
    WAYWISER_ON_GPU void operator()(gpu::Thread) const {}
};

struct Bench {
    gpu::Stream& stream;
    gpu::Event event;
};

struct Call {
    const char* name;
    const char* description;
    const char* source;
    void (*make)(Bench&);
};

constexpr const char* kCommScope = "Comm|Scope 0.12 (kernel launch, cudart launch, synchronise)";

const Call kCalls[] = {
    {"kernel-launch", "launching a kernel that does nothing, until the call returns", kCommScope,
     [](Bench& bench) { gpu::launch(bench.stream, {}, Nothing{}); }},
    {"launch-synchronize", "launching a kernel that does nothing and waiting for it", kCommScope,
     [](Bench& bench) {
         gpu::launch(bench.stream, {}, Nothing{});
         bench.stream.synchronize();
     }},
    {"event-record", "recording an event that keeps no time on a stream, until the call returns",
     "CUDA runtime API (cudaEventRecord)", [](Bench& bench) { bench.event.record(bench.stream); }},
    {"event-query", "asking whether an event has passed that has",
     "CUDA runtime API (cudaEventQuery)",
     [](Bench& bench) { static_cast<void>(bench.event.done()); }},
    {"stream-synchronize", "waiting for a stream that has nothing to do", kCommScope,
     [](Bench& bench) { bench.stream.synchronize(); }},
    {"device-synchronize", "waiting for a device that has nothing to do", kCommScope,
     [](Bench& bench) { gpu::synchronize_device(bench.stream.device()); }},
};

class CallTrial final : public Trial {
public:
    CallTrial(const Call& call, gpu::Stream& stream)
        : call_(call), bench_{stream, gpu::Event(stream.device(), gpu::EventUse::ordering)} {
        bench_.event.record(stream);
        stream.synchronize();
    }

    double run(std::size_t repetitions) override {
        const double seconds = timed([&] {
            for (std::size_t i = 0; i < repetitions; ++i) call_.make(bench_);
        });
        bench_.stream.synchronize();
        return seconds;
    }
    double once() override {
        return timed([this] { run(1); });
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostCalls; }

private:
    const Call& call_;
    Bench bench_;
};

class GpuCall final : public Operation {
public:
    explicit GpuCall(const Call& call)
        : call_(call),
          info_{.name = call.name,
                .description = call.description,
                .parameters = {},
                .source = call.source} {}

    [[nodiscard]] const Info& info() const override { return info_; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine&,
                                                 OperationTools& tools) const override {
        return std::make_unique<CallTrial>(call_, tools.stream(call.place.index, 0));
    }

private:
    const Call& call_;
    Info info_;
};

const bool registered = [] {
    for (const Call& call : kCalls) Operations::instance().add(std::make_unique<GpuCall>(call));
    return true;
}();

}  // namespace
}  // namespace waywiser
