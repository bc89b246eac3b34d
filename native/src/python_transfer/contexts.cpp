#include "contexts.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include "errors.hpp"
#include "gil_release.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// At the end of the process, calls of other threads that take longer than this are abandoned.
constexpr auto kExitPatience = std::chrono::seconds(1);

// The contexts of this process. Never destroyed: threads may be in a call when the process ends.
struct Registry {
    std::mutex mutex;
    std::set<std::weak_ptr<ContextState>, std::owner_less<>> contexts;
};

std::atomic<Registry*> contexts{new Registry()};

Registry& registry() { return *contexts; }

void after_fork() {
    ++detail::forks;
    contexts = new Registry();  // the mutex of the old one may be locked forever
}

waywiser_options options_of(const Options& options) {
    waywiser_options plain{};
    plain.size = sizeof plain;
    plain.threads = options.threads;
    plain.pinned_bytes = options.pinned_bytes;
    plain.relays = options.relays.data();
    plain.relay_count = options.relays.size();
    plain.relay_bytes = options.relay_bytes;
    plain.max_queued_bytes = options.max_queued_bytes;
    plain.plain = options.plain ? 1 : 0;
    plain.no_peer_access = options.peer_access ? 0 : 1;
    plain.list_multiprocessors = options.list_multiprocessors;
    plain.spin_seconds = options.spin_seconds;
    plain.policy = options.policy.c_str();
    plain.cpus = options.cpus.data();
    plain.cpu_count = options.cpus.size();
    plain.numa_nodes = options.numa_nodes.data();
    plain.numa_node_count = options.numa_nodes.size();
    plain.quiet = 1;  // report_warnings() reports them
    return plain;
}

}  // namespace

void count_forks() { pthread_atfork(nullptr, nullptr, after_fork); }

waywiser_status ContextState::create(const Options& options, std::shared_ptr<ContextState>& made) {
    auto received = std::make_unique<Received>();
    waywiser_options plain = options_of(options);
    // A thread of the library calls it, which must not take the GIL.
    plain.log = [](void* data, const char* line) {
        auto& own = *static_cast<Received*>(data);
        const std::lock_guard lock(own.mutex);
        own.lines.emplace_back(line);
    };
    plain.log_data = received.get();
    waywiser_context* context = nullptr;
    const waywiser_status status = waywiser_context_create(&plain, &context);
    if (status != WAYWISER_OK) return status;
    made.reset(new ContextState(context, std::move(received)));
    if (waywiser_require_gpu(context) != WAYWISER_OK) made->no_gpu_ = waywiser_last_error();
    const std::lock_guard lock(registry().mutex);
    std::erase_if(registry().contexts, [](const auto& known) { return known.expired(); });
    registry().contexts.insert(made);
    return WAYWISER_OK;
}

ContextState::~ContextState() { close(); }

void ContextState::close() {
    if (process_ != fork_count()) return;  // its mutex may be locked forever
    release(std::unique_lock(mutex_));
}

void ContextState::close_soon() {
    if (process_ != fork_count()) return;
    release(std::unique_lock(mutex_, kExitPatience));
}

void ContextState::release(std::unique_lock<std::shared_timed_mutex> lock) {
    if (!lock.owns_lock()) return;
    waywiser_context_release(context_);
    context_ = nullptr;
}

void ContextState::check_process() const {
    if (process_ != fork_count()) raise_forked();
}

void ContextState::check_reaches(const Operand& operand) const {
    if (operand.gpu == kHost || no_gpu_.empty()) return;
    raise(Failure::unsupported,
          {.what = no_gpu_ + "; the array is " + text(operand),
           .remedy = "pass host arrays, or make the GPU usable by this process"});
}

void ContextState::add_copies_on_host(waywiser_stats& stats) const {
    stats.transfers += on_host_.transfers;
    stats.bytes += on_host_.bytes;
}

void ContextState::add_copies_on_host(waywiser_method_stats& plain) const {
    constexpr double kNanoseconds = 1e9;
    plain.transfers += on_host_.transfers;
    plain.bytes += on_host_.bytes;
    plain.seconds += static_cast<double>(on_host_.nanoseconds) / kNanoseconds;
}

bool ContextState::is_open() {
    const std::shared_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() && context_ != nullptr;
}

std::vector<std::string> ContextState::warnings() {
    const std::shared_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || context_ == nullptr) return {};
    std::size_t needed = 0;
    if (waywiser_context_warnings(context_, nullptr, 0, &needed) != WAYWISER_OK) return {};
    std::string text(needed, '\0');
    if (waywiser_context_warnings(context_, text.data(), text.size(), &needed) != WAYWISER_OK) {
        return {};
    }
    text.resize(text.find('\0'));
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::vector<std::string> ContextState::new_warnings() {
    if (looked_ && !has_calls_) return {};
    looked_ = true;
    {
        const std::shared_lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) return {};
        if (context_ == nullptr) {
            if (std::exchange(looked_closed_, true)) return {};
            const std::lock_guard received(received_->mutex);
            return received_->lines;
        }
        std::size_t needed = 0;
        const waywiser_status status = waywiser_context_warnings(context_, nullptr, 0, &needed);
        if (status != WAYWISER_OK || needed == reported_) return {};
        reported_ = needed;
    }
    return warnings();
}

std::vector<std::string> ContextState::for_log(const std::vector<std::string>& warnings) {
    const std::size_t from = std::min(std::exchange(logged_, warnings.size()), warnings.size());
    return {warnings.begin() + static_cast<std::ptrdiff_t>(from), warnings.end()};
}

void report_warnings(ContextState& state, Py_ssize_t level, nb::handle context) {
    static auto& reported = *new std::set<std::string>();  // guarded by the GIL
    const std::vector<std::string> warnings = state.new_warnings();
    if (warnings.empty()) return;
    const nb::object log = context.is_valid() ? attribute(context, "_log") : nb::object();
    if (log.is_valid() && !log.is_none()) {
        for (const std::string& text : state.for_log(warnings)) {
            try {
                log(text_of(text));
            } catch (nb::python_error& error) {
                error.restore();
                PyErr_WriteUnraisable(log.ptr());
            }
        }
        return;
    }
    for (const std::string& text : warnings) {
        if (!reported.insert(text).second) continue;
        if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), level) != 0) throw nb::python_error();
    }
}

void raise_closed() {
    raise(Failure::invalid_transfer, {.what = "the context is closed",
                                      .where = "waywiser.transfer.Context",
                                      .remedy = "make another one"});
}

const std::shared_ptr<ContextState>& default_context() {
    static auto& context = *new std::shared_ptr<ContextState>();  // guarded by the GIL
    if (context) {
        context->check_process();
        return context;
    }
    std::shared_ptr<ContextState> made;
    waywiser_status status = WAYWISER_OK;
    {
        const GilRelease unlocked;
        status = ContextState::create({}, made);
    }
    check(status);
    if (!context) {  // else another thread was faster
        context = std::move(made);
    } else {
        const GilRelease unlocked;
        made.reset();
    }
    return context;
}

void close_all() {
    std::vector<std::shared_ptr<ContextState>> living;
    {
        const std::lock_guard lock(registry().mutex);
        for (const auto& known : registry().contexts) {
            if (auto context = known.lock()) living.push_back(std::move(context));
        }
    }
    const GilRelease unlocked;
    for (const auto& context : living) context->close_soon();
    living.clear();
}

}  // namespace waywiser::python
