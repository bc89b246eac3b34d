// Prefetches managed memory: the driver migrates whole ranges before their use.
#include "executor/migration.hpp"
#include "gpu/gpu.hpp"
#include "waywiser/executor.hpp"

namespace waywiser {
namespace {

class PrefetchExecution final : public Execution {
public:
    PrefetchExecution(const Path& path, gpu::Stream& stream)
        : home_(path), to_(location_of(path.destination)), stream_(stream) {}

    void restore(const View& source, const View&) override { home_.restore(source); }
    void start(const View& source, const View&) override {
        gpu::prefetch_async(source.data, source.bytes, to_, stream_);
    }
    void finish() override { stream_.synchronize(); }

private:
    Home home_;
    gpu::Location to_;
    gpu::Stream& stream_;
};

class Prefetch final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "prefetch",
            .description =
                "the driver moves managed memory to the place that a call names, ahead of its use",
            .parameters = {},
            .source = "Pearson et al., Comm|Scope, ICPE 2019, section 3.4 (cudaMemPrefetchAsync)"};
        return info;
    }
    [[nodiscard]] Traits traits() const override {
        return {.family = Family::unified_memory,
                .shares = {.file_system = false},
                .reference = PathClass::unified,
                .calls = {{.text = "cudaMemPrefetchAsync"}}};
    }
    [[nodiscard]] std::optional<std::string> unsupported_reason(const Transfer& transfer,
                                                                const Machine&) const override {
        return migration_unsupported_reason(transfer.path);
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return {};
    }
    [[nodiscard]] bool in_place(const Transfer&, const Machine&) const override { return true; }
    [[nodiscard]] bool repeatable(const Transfer&, const Machine&) const override { return false; }
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::device;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        return {migration_gpu(transfer.path)};
    }
    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer, const Machine&,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine&) const override {
        require_migration(transfer.path);
        return std::make_unique<PrefetchExecution>(transfer.path, *lanes.front());
    }
};

const Registered<Executor, Prefetch> registered;

}  // namespace
}  // namespace waywiser
