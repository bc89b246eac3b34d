// The contexts of the library in this process.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "operand.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

namespace detail {
inline std::atomic<unsigned> forks{0};
}

// Counts forks from now on. Call it once.
void count_forks();
// Number of forks between the process that loaded the module and this one.
inline unsigned fork_count() { return detail::forks.load(std::memory_order_relaxed); }

struct Options {
    std::size_t threads = 0;
    std::size_t pinned_bytes = 0;
    std::vector<int> relays;
    std::size_t relay_bytes = 0;
    std::size_t max_queued_bytes = 0;
    bool plain = false;
    bool peer_access = true;
    std::size_t list_multiprocessors = 0;
    double spin_seconds = 0;
    std::string policy;
    std::vector<int> cpus;
    std::vector<int> numa_nodes;
};

class ContextState {
public:
    // Creates a context of the library. Call it without the GIL.
    static waywiser_status create(const Options& options, std::shared_ptr<ContextState>& made);
    ~ContextState();
    ContextState(const ContextState&) = delete;
    ContextState& operator=(const ContextState&) = delete;

    // Waits for the calls of other threads, then releases the context of the library. Does nothing
    // the second time, and in a forked child. Call it without the GIL.
    void close();
    // The same, but abandons calls that do not end soon. For the end of the process.
    void close_soon();
    // Raises ForkedContextError in a forked child. Needs the GIL.
    void check_process() const;
    // Raises UnsupportedTransfer for GPU memory if the library can use no GPU. Needs the GIL.
    void check_reaches(const Operand& operand) const;

    // Whether it is certain that the context is not closed. Never waits. Needs the GIL.
    [[nodiscard]] bool is_open();

    // Copies host memory without the library, and counts that as the library would.
    template <class Copy>
    void copy_on_host(std::size_t bytes, const Copy& copy) {
        const auto begun = std::chrono::steady_clock::now();
        copy();
        const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begun;
        on_host_.transfers.fetch_add(1, std::memory_order_relaxed);
        on_host_.bytes.fetch_add(bytes, std::memory_order_relaxed);
        on_host_.nanoseconds.fetch_add(static_cast<std::uint64_t>(taken.count()),
                                       std::memory_order_relaxed);
    }
    // Adds these copies to those of the library.
    void add_copies_on_host(waywiser_stats& stats) const;
    void add_copies_on_host(waywiser_method_stats& plain) const;

    // The warnings of the library's context so far. Never waits. Needs the GIL.
    [[nodiscard]] std::vector<std::string> warnings();
    // The same, but only if there are more than at the last call of this. Takes no lock until the
    // library was called. After close(): also those of closing it.
    [[nodiscard]] std::vector<std::string> new_warnings();
    // Those of them that a log has not got yet, which has them then.
    [[nodiscard]] std::vector<std::string> for_log(const std::vector<std::string>& warnings);

    // Keeps the context open for one call. Create and use it without the GIL.
    class Use {
    public:
        explicit Use(ContextState& state) : lock_(state.mutex_), state_(state) {}
        // False if the context was closed.
        [[nodiscard]] bool is_open() const { return state_.context_ != nullptr; }
        // The context of the library, for a call of the library. Null if it was closed.
        [[nodiscard]] waywiser_context* get() const {
            state_.has_calls_ = true;
            return state_.context_;
        }

    private:
        std::shared_lock<std::shared_timed_mutex> lock_;
        ContextState& state_;
    };

private:
    // The lines that the library's context has given to its log.
    struct Received {
        std::mutex mutex;
        std::vector<std::string> lines;
    };

    ContextState(waywiser_context* context, std::unique_ptr<Received> received)
        : context_(context), received_(std::move(received)), process_(fork_count()) {}

    void release(std::unique_lock<std::shared_timed_mutex> lock);

    struct CopiesOnHost {
        std::atomic<std::uint64_t> transfers{0}, bytes{0}, nanoseconds{0};
    };

    std::shared_timed_mutex mutex_;
    waywiser_context* context_;
    const std::unique_ptr<Received> received_;
    unsigned process_;
    std::atomic<bool> has_calls_{false};  // calls of the library, which may find what to warn of
    bool looked_ = false;                 // for the warnings of its creation; by the GIL
    std::size_t reported_ = 1;    // size of the text of the warnings at the last look; by the GIL
    std::size_t logged_ = 0;      // warnings that a log of the program has; by the GIL
    bool looked_closed_ = false;  // for the warnings of closing it; by the GIL
    CopiesOnHost on_host_;
    std::string no_gpu_;  // why the library can use no GPU; empty if it can
};

[[noreturn]] void raise_closed();

// Reports new warnings of the context as UserWarning, each once per process, at the line of the
// innermost Python function or of its `level - 1`-th caller. If the Python object `context` has a
// log, that gets them instead, all of them, and what it raises is only reported. Needs the GIL.
// Throws what the program makes of a warning.
void report_warnings(ContextState& state, Py_ssize_t level = 1, nanobind::handle context = {});

// The default context of the module's functions, created at the first call. Needs the GIL.
const std::shared_ptr<ContextState>& default_context();

// Closes all contexts, at the end of the interpreter. Needs the GIL.
void close_all();

}  // namespace waywiser::python
