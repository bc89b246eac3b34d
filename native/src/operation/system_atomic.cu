// The cost of a system-scope atomic add by a GPU.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "operation/device_slope.hpp"
#include "operation/reached_memory.hpp"
#include "operation/timed.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

using Counter = unsigned long long;

constexpr std::size_t kCounterApart = 128;    // bytes: each counter is a GPU cache line
constexpr std::size_t kLeastAdds = 256;       // per sample, by a single thread
constexpr std::size_t kLeastAddsOfMany = 16;  // per sample, by each of many threads
constexpr std::size_t kMostAdds = 1 << 20;    // per sample, by all threads together
constexpr std::size_t kTriedAdds = 8;         // per thread, to check that none is lost

struct AddMethod {
    const char* name;
    gpu::Shape shape;
    bool own_counters;
    [[nodiscard]] std::size_t threads() const {
        return static_cast<std::size_t>(shape.blocks) * shape.threads;
    }
    [[nodiscard]] std::size_t counters() const { return own_counters ? threads() : 1; }
};

constexpr AddMethod kMethods[] = {{"chain", {.blocks = 1, .threads = 1}, false},
                                  {"shared", {.blocks = 32, .threads = 32}, false},
                                  {"apart", {.blocks = 32, .threads = 32}, true}};

const AddMethod& method_named(const std::string& name) {
    for (const AddMethod& method : kMethods) {
        if (name == method.name) return method;
    }
    throw NotSupported("there is no method to add called '" + name + "'");
}

WAYWISER_BOTH inline Counter* counter(std::byte* data, std::size_t i) {
    return reinterpret_cast<Counter*>(data + i * kCounterApart);
}

struct Clear {
    std::byte* data;
    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const { *counter(data, thread.index) = 0; }
};

// The adds of a thread depend on each other: the amount depends on the previous value.
struct Add {
    std::byte* data;
    std::size_t adds;
    bool own_counters;
    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        Counter* const here = counter(data, own_counters ? thread.index : 0);
        Counter amount = 1;
        for (std::size_t i = 0; i < adds; ++i) {
            amount = 1 + (gpu::add_system(here, amount) >> 63);  // no counter gets that large
        }
    }
};

struct Sum {
    std::byte* data;
    std::size_t counters;
    Counter* to;
    WAYWISER_ON_GPU void operator()(gpu::Thread) const {
        Counter sum = 0;
        for (std::size_t i = 0; i < counters; ++i) sum += *counter(data, i);
        *to = sum;
    }
};

class AtomicTrial final : public Trial {
public:
    AtomicTrial(const AddMethod& method, gpu::Stream& stream, const Place& place,
                const Machine& machine, OperationTools& tools)
        : method_(method),
          stream_(stream),
          memory_(stream.device(), ReachedMemory::at(place), method.counters() * kCounterApart,
                  machine, tools),
          slope_(stream, tools) {
        const auto counters = static_cast<unsigned>(method.counters());
        gpu::launch(stream_, {.blocks = counters, .threads = 1}, Clear{memory_.data()});
        add(kTriedAdds);
        if (sum() != kTriedAdds * method_.threads()) {
            throw NotSupported("adds of gpu:" + std::to_string(stream.device()) +
                               " to a counter at " + place.text() +
                               " get lost: nothing between them carries atomics");
        }
    }

    double run(std::size_t repetitions) override {
        const std::size_t each = std::max<std::size_t>(repetitions / method_.threads(), 1);
        const double seconds = slope_(each, [this](std::size_t adds) { add(adds); });
        return seconds * static_cast<double>(repetitions) /
               static_cast<double>(each * method_.threads());
    }
    double once() override {
        return timed([this] {
            add(1);
            stream_.synchronize();
        });
    }
    [[nodiscard]] double overhead() const override { return slope_.overhead(); }
    [[nodiscard]] std::size_t least_repetitions() const override {
        return method_.threads() == 1 ? kLeastAdds : kLeastAddsOfMany * method_.threads();
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostAdds; }

private:
    void add(std::size_t adds) const {
        gpu::launch(stream_, method_.shape, Add{memory_.data(), adds, method_.own_counters});
    }
    [[nodiscard]] Counter sum() const {
        const gpu::DeviceBuffer total(stream_.device(), sizeof(Counter));
        gpu::launch(
            stream_, {},
            Sum{memory_.data(), method_.counters(), reinterpret_cast<Counter*>(total.data())});
        stream_.synchronize();
        Counter sum = 0;
        gpu::copy_sync(&sum, total.data(), sizeof(sum), stream_.device());
        return sum;
    }

    const AddMethod& method_;
    gpu::Stream& stream_;
    ReachedMemory memory_;
    DeviceSlope slope_;
};

Parameter on(std::vector<std::string> places) {
    return {.name = "on",
            .description = "where the counter is: at the GPU itself, on the host, or at a peer",
            .choices = std::move(places)};
}

Parameter by() {
    return {.name = "by",
            .description =
                "one thread that waits for each add, 1024 threads that share one "
                "counter, or as many with a counter each",
            .choices = {"chain", "shared", "apart"}};
}

class SystemAtomic final : public Operation {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "system-atomic",
            .description =
                "one atomic add of a GPU that all devices and CPUs are to see (on memory of the "
                "host it is one against CPUs too only where the link carries atomics)",
            .parameters = {on({"gpu:0"}), by()},
            .source =
                "Pearson et al., NUMA-aware data-transfer measurements for Power/NVLink "
                "systems, 2018 (future work); CUDA programming guide (atomicAdd_system)"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Place& place,
                                                    const Machine& machine) const override {
        return {on(ReachedMemory::places(place.index, machine)), by()};
    }
    [[nodiscard]] TimingMode timing(Place::Kind) const override { return TimingMode::device; }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools& tools) const override {
        const auto place = Place::parse(parameter(*this, call, machine, "on"));
        return std::make_unique<AtomicTrial>(method_named(parameter(*this, call, machine, "by")),
                                             tools.stream(call.place.index, 0), place, machine,
                                             tools);
    }
};

const Registered<Operation, SystemAtomic> registered;

}  // namespace
}  // namespace waywiser
