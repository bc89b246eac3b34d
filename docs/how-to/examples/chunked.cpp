// One thread that copies in chunks: what cutting a copy into pieces costs, and at which size it
// starts to matter. The example of docs/how-to/add-an-executor.md.
#include <algorithm>
#include <cstring>

#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

// What is made ready once and started many times. It works on views and owns no user's bytes.
class ChunkedExecution final : public Execution {
public:
    explicit ChunkedExecution(std::size_t chunk) : chunk_(chunk) {}

    void start(const View& source, const View& destination) override {
        for (std::size_t at = 0; at < source.bytes; at += chunk_) {
            std::memcpy(destination.data + at, source.data + at,
                        std::min(chunk_, source.bytes - at));
        }
    }

private:
    std::size_t chunk_;
};

class Chunked final : public Executor {
public:
    // What `waywiser survey --list` and the catalogue say of it.
    [[nodiscard]] const Info& info() const override {
        static const Info info{.name = "chunked",
                               .description = "one thread of the CPU copies in chunks",
                               .parameters = {chunk()},
                               .source = "this guide"};
        return info;
    }

    // Asked for every pair of memories, also of machines that are only a captured file: it may look
    // at nothing but its arguments and the registries.
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
            if (!side->on_host()) return "chunks are copied between memories of the host";
            const MemoryKind* kind = Memories::instance().find(side->kind);
            if (kind == nullptr || !kind->cpu_accessible()) {
                return "the CPU cannot address " + side->kind + " memory";
            }
            if (machine.cpus(side->place).empty()) {
                return "no CPU of " + side->place.text() + " may be used";
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return {chunk()};
    }

    // It returns when the bytes have arrived, so the host's clock times it.
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }

    // It needs no stream of a GPU.
    [[nodiscard]] std::vector<int> lanes(const Transfer&, const Machine&) const override {
        return {};
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine&) const override {
        const auto bytes = std::stoul(parameter(*this, transfer, machine, "chunk"));
        return std::make_unique<ChunkedExecution>(bytes);
    }

private:
    // The first choice is the default; an ordered parameter takes any whole number between the
    // smallest and the largest of its choices.
    static Parameter chunk() {
        return {.name = "chunk",
                .description = "bytes of each piece",
                .kind = ParameterKind::ordered,
                .choices = {"65536", "4096", "1048576"}};
    }
};

const Registered<Executor, Chunked> registered;

}  // namespace
}  // namespace waywiser
