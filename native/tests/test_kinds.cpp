#include "test_kinds.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "host/files.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::test {
namespace {

class Turn final : public Execution {
public:
    void restore(const View& source, const View& destination) override {
        if (source.data != destination.data) throw std::logic_error("not one buffer");
        ++kind_calls().restores;
        if (first_ == nullptr) first_ = source.data;
        ready_.insert(source.data);
    }
    void start(const View& source, const View&) override {
        ++kind_calls().starts;
        if (ready_.erase(source.data) == 0) throw std::logic_error("started without a restore");
        const bool other = source.data != first_;
        if (kind_calls().spoils || (kind_calls().spoils_others && other)) {
            source.data[source.bytes / 2] ^= std::byte{1};
        }
    }

private:
    const std::byte* first_ = nullptr;
    std::set<const std::byte*> ready_;
};

class Turner final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{.name = kTurner,
                               .description = "turns bytes over where they are",
                               .parameters = {},
                               .source = "the tests"};
        return info;
    }
    [[nodiscard]] std::optional<std::string> unsupported_reason(const Transfer& transfer,
                                                                const Machine&) const override {
        const Path& path = transfer.path;
        if (path.source.kind == "pageable" && path.destination.kind == "pageable") {
            return std::nullopt;
        }
        return "only pageable memory is turned over";
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return {};
    }
    [[nodiscard]] bool in_place(const Transfer&, const Machine&) const override { return true; }
    [[nodiscard]] bool repeatable(const Transfer&, const Machine&) const override { return false; }
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer&, const Machine&) const override {
        return {};
    }
    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer&, const Machine&,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine&) const override {
        return std::make_unique<Turn>();
    }
};

class FadingBuffer final : public Buffer {
public:
    explicit FadingBuffer(std::size_t bytes) : bytes_(bytes), data_(host::page_aligned(bytes)) {}
    [[nodiscard]] std::byte* data() const override { return data_.get(); }
    [[nodiscard]] std::size_t bytes() const override { return bytes_; }
    [[nodiscard]] Placement placement() const override { return {.detail = "nobody asks"}; }
    void restore(std::size_t bytes) override {
        ++kind_calls().buffer_restores;
        kind_calls().largest_restore = std::max(kind_calls().largest_restore, bytes);
    }

private:
    std::size_t bytes_;
    std::unique_ptr<std::byte[], host::Free> data_;
};

class Fading final : public MemoryKind {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{.name = kFading,
                               .description = "memory that fades by being read",
                               .parameters = {},
                               .source = "the tests"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] bool used_up(const Memory&) const override { return true; }
    [[nodiscard]] std::size_t granule() const override { return kFadingGranule; }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory&, std::size_t bytes,
                                                   const Machine&) const override {
        return std::make_unique<FadingBuffer>(bytes);
    }
};

}  // namespace

void register_kinds() {
    static const Registered<Executor, Turner> turner;
    static const Registered<MemoryKind, Fading> fading;
}

KindCalls& kind_calls() {
    static KindCalls all;
    return all;
}

void reset_kind_calls() { kind_calls() = {}; }

}  // namespace waywiser::test
