// Copies pageable memory that is pinned only for the copy: registered, copied by the copy engine,
// and unregistered. It is measured because programs do it; it is slower than the plain copy.
#include <algorithm>
#include <cstdint>

#include "executor/chunked.hpp"
#include "executor/reach.hpp"
#include "gpu/gpu.hpp"
#include "host/pages.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

class RegisteredExecution final : public Execution {
public:
    explicit RegisteredExecution(gpu::Stream& stream) : stream_(stream) {}

    void start(const View& source, const View& destination) override {
        const View& pageable = source.memory->on_gpu() ? destination : source;
        const std::size_t page = host::page_bytes();
        const std::size_t before = reinterpret_cast<std::uintptr_t>(pageable.data) % page;
        const std::size_t bytes = (before + pageable.bytes + page - 1) / page * page;
        const gpu::Registration pinned(pageable.data - before, bytes, stream_.device());
        gpu::copy_async(destination.data, source.data, source.bytes, stream_);
        stream_.synchronize();
    }

private:
    gpu::Stream& stream_;
};

class RegisteredCopy final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{.name = "registered",
                               .description =
                                   "pageable memory is registered, copied by a copy engine, and "
                                   "unregistered",
                               .parameters = {},
                               .source = "CUDA Programming Guide (cudaHostRegister)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.survey_only = true,
                .family = Family::runtime_copy,
                .shares = {.file_system = false},
                .calls = {{.text = "cudaHostRegister, cudaMemcpyAsync, cudaHostUnregister"}}};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(const Transfer& transfer,
                                                                const Machine&) const override {
        const Path& path = transfer.path;
        if (path.source.on_gpu() == path.destination.on_gpu()) {
            return "pageable memory is registered for copies between the host and a GPU";
        }
        const Memory& host = path.source.on_gpu() ? path.destination : path.source;
        if (!host.on_host()) return "files are not registered";
        if (known_to_gpus(host)) return host.kind + " memory is pinned already";
        return std::nullopt;
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return {};
    }
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        return {gpu_of(transfer.path)};
    }
    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer&, const Machine&,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine&) const override {
        return std::make_unique<RegisteredExecution>(*lanes.front());
    }
};

const Registered<Executor, RegisteredCopy> registered;

}  // namespace
}  // namespace waywiser
