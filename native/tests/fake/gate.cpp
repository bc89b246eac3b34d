// The fake's gate: streams wait on a value, as on a real GPU.
#include <optional>

#include "context.hpp"
#include "gpu/gpu.hpp"
#include "handles.hpp"

namespace waywiser::gpu {

using fake::Context;

namespace {

// Shared with the waiting streams; changed only under the context's lock.
struct Word {
    std::uint64_t closed = 0;  // the value that opens the gate
    std::uint64_t opened = 0;
    bool is_closed = false;
    std::optional<std::uint64_t> ignored_by;  // the configuration that ignored an opening
};

}  // namespace

struct Gate::State {
    explicit State(int device) : memory(sizeof(unsigned), HostUse::portable, device) {}

    HostBuffer memory;  // where the real gate has its word
    std::shared_ptr<Word> word = std::make_shared<Word>();
};

Gate::Gate(int device) : state_(std::make_unique<State>(device)) { ++fake::living().gates; }

Gate::~Gate() {
    open();
    --fake::living().gates;
}

void Gate::close(const Stream& stream) {
    Context& context = Context::instance();
    context.check("cuStreamWaitValue32");
    context.count(fake::Point::call, "cuStreamWaitValue32");
    const auto word = state_->word;
    std::uint64_t value = 0;
    context.change([&] {
        if (!word->is_closed) ++word->closed;
        word->is_closed = true;
        value = word->closed;
    });
    fake::thread_of(stream).enqueue([word, value] {
        Context& held = Context::instance();
        held.hold([&] {
            const bool forgiven = word->ignored_by && *word->ignored_by != held.generation();
            return word->opened >= value || forgiven;
        });
    });
}

void Gate::open() noexcept {
    Context& context = Context::instance();
    Word& word = *state_->word;
    context.change([&] {
        if (!word.is_closed) return;
        if (context.ignores_opening()) {
            word.ignored_by = context.generation();
            return;
        }
        word.opened = word.closed;
        word.is_closed = false;
    });
}

std::string Gate::kind() const { return "stream-wait-value"; }

}  // namespace waywiser::gpu
