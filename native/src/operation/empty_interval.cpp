// Two events with nothing between them: the minimum of every time measured by a device.
#include "gpu/gpu.hpp"
#include "operation/timed.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

class EmptyIntervalTrial final : public Trial {
public:
    EmptyIntervalTrial(gpu::Stream& stream, OperationTools& tools)
        : stream_(stream), tools_(tools), start_(stream.device()), stop_(stream.device()) {}

    double run(std::size_t) override {
        tools_.behind_gate({&stream_}, [this] { record(); });
        return gpu::seconds_between(start_, stop_);
    }
    double once() override {
        return timed([this] {
            record();
            stream_.synchronize();
        });
    }
    [[nodiscard]] double overhead() const override { return 0; }  // it measures the overhead
    [[nodiscard]] std::size_t most_repetitions() const override { return 1; }

private:
    void record() {
        start_.record(stream_);
        stop_.record(stream_);
    }

    gpu::Stream& stream_;
    OperationTools& tools_;
    gpu::Event start_;
    gpu::Event stop_;
};

class EmptyInterval final : public Operation {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "empty-interval",
            .description = "two events behind the gate with nothing between them",
            .parameters = {},
            .source = "Hoefler & Belli, SC'15 (overhead and resolution of the timer)"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] TimingMode timing(Place::Kind) const override { return TimingMode::device; }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine&,
                                                 OperationTools& tools) const override {
        return std::make_unique<EmptyIntervalTrial>(tools.stream(call.place.index, 0), tools);
    }
};

const Registered<Operation, EmptyInterval> registered;

}  // namespace
}  // namespace waywiser
