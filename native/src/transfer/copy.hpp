// The copies that programs call: find out what memory both sides are, choose a method, and order
// the copy in the caller's stream.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "transfer/chunked_copy.hpp"
#include "transfer/engine.hpp"

namespace waywiser::transfer {

struct PolicyDecision;

// A stream as a caller names it.
struct CallerStream {
    void* handle = nullptr;  // the runtime's stream handle
    int gpu = -1;            // owner of a default stream; -1: the current GPU
    bool none = false;       // ordered with no stream: only for host memory and files

    // Converts the stream constants of transfer.h.
    static CallerStream of(void* given);
    [[nodiscard]] bool is_default() const;
    [[nodiscard]] bool is_legacy() const;
};

// Invalid arguments.
class InvalidCopy : public std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// A plain copy in progress: the event after it, and the jobs that watch the event for descriptors.
class WatchedEvent {
public:
    explicit WatchedEvent(gpu::Event event)
        : event_(std::make_shared<const gpu::Event>(std::move(event))) {}

    [[nodiscard]] const gpu::Event& event() const { return *event_; }
    // Whether the copy has ended, in success or failure, and all descriptors are written.
    [[nodiscard]] bool done();
    // See Started.
    bool wait(double seconds);
    void notify(int descriptor, Engine& engine);

private:
    [[nodiscard]] bool ended() const noexcept;
    [[nodiscard]] std::vector<std::shared_ptr<Job>> watches();

    const std::shared_ptr<const gpu::Event> event_;
    const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
    std::atomic<bool> watched_{false};
    std::mutex mutex_;
    std::vector<std::shared_ptr<Job>> watches_;
};

// A copy that was started: a job, a plain copy followed by an event, or nothing left to wait for.
// Thread safe.
class Started {
public:
    explicit Started(std::size_t bytes) : bytes_(bytes) {}
    Started(std::size_t bytes, gpu::Event after)
        : bytes_(bytes), plain_(std::make_shared<WatchedEvent>(std::move(after))) {}
    // `before`: bytes that have arrived, or will have, when the job starts.
    Started(std::shared_ptr<Engine> engine, std::shared_ptr<Job> job, std::size_t before = 0)
        : bytes_(before), engine_(std::move(engine)), job_(std::move(job)) {}

    // True once all descriptors are written: they can be closed then.
    [[nodiscard]] bool done() const;
    // Waits until done() for at most `seconds` (negative: without limit); false if it still runs.
    // Throws what the transfer failed with.
    bool wait(double seconds) const;
    // Bytes that have arrived by now.
    [[nodiscard]] std::size_t moved() const noexcept;
    // Like moved(), but only valid after wait() has returned true; makes no further query.
    [[nodiscard]] std::size_t moved_in_all() const { return bytes_ + (job_ ? job_->moved() : 0); }
    bool order(const gpu::Stream& stream, double seconds) const;
    // Orders a caller's stream after the copy; blocks like Job::order().
    bool order(const Engine& engine, const CallerStream& stream, double seconds) const;
    // Like Job::notify(). `engine` watches a plain copy, which has no thread of its own. If the
    // engine is stopped before the copy is done, the descriptor is written at once, and done() is
    // false then.
    void notify(int descriptor, Engine& engine) const;

private:
    std::size_t bytes_ = 0;
    std::shared_ptr<WatchedEvent> plain_;
    std::shared_ptr<Engine> engine_;
    std::shared_ptr<Job> job_;
};

// The memory of one side of a copy.
struct Side {
    End end;
    bool managed = false;
    bool uniform = true;  // one call of the runtime can copy all of it
};
Side side_of(void* data, std::size_t bytes);

// Throws InvalidCopy for a null pointer and for a range beyond the address space. `call`
// and `argument` are their names in the message.
void check_range(const void* data, std::size_t bytes, const char* call, const char* argument);

// The chosen method of a copy.
struct Choice {
    enum class Method { plain, chunked };
    Method method = Method::plain;
    CopyShape shape;
    std::string why;                         // one-line explanation
    const PolicyDecision* policy = nullptr;  // what decided; nullptr: the defaults
};
// Chooses by the policy, or safe defaults. Does not call the GPU runtime and changes nothing.
Choice choose(const Engine& engine, const Side& to, const Side& from, std::size_t bytes);

// After a failure: waits until the stream does not use the caller's memory any more. Returns at
// once if the stream cannot be queried.
void drain(const Engine& engine, const CallerStream& stream) noexcept;
// The shape of a chunked copy without a policy: the default settings of executors are those of
// large copies. `threads`: maximum number of threads; `relays`: other GPUs whose links help.
CopyShape default_shape(const End& to, const End& from, std::size_t bytes, std::size_t threads,
                        const std::vector<int>& relays = {});

// Copies like cudaMemcpyAsync. On return, a pageable destination is filled and a pageable source
// can be reused. Throws InvalidCopy, NotSupported, gpu::Error, Cancelled, ForkedProcess.
void copy(Engine& engine, void* to, const void* from, std::size_t bytes,
          const CallerStream& stream);
// Like copy() with one side on a GPU, but waits until a host destination is filled and a host
// source can be reused, even if it is pinned: at most `seconds` (negative: without limit). Returns
// the rest of the copy if it is not complete by then. Does not wait while the stream is captured.
std::optional<Started> copy_and_wait(Engine& engine, void* to, const void* from, std::size_t bytes,
                                     const CallerStream& stream, double seconds);
// Returns at once; the copy starts after the work in the stream.
Started copy_async(const std::shared_ptr<Engine>& engine, void* to, const void* from,
                   std::size_t bytes, const CallerStream& stream);

// `moved`: bytes read or written, also if an exception is thrown before all are.
void read(Engine& engine, int file, std::uint64_t offset, void* to, std::size_t bytes,
          const CallerStream& stream, std::size_t& moved);
Started read_async(const std::shared_ptr<Engine>& engine, int file, std::uint64_t offset, void* to,
                   std::size_t bytes, const CallerStream& stream);
void write(Engine& engine, int file, std::uint64_t offset, const void* from, std::size_t bytes,
           const CallerStream& stream, std::size_t& moved);
Started write_async(const std::shared_ptr<Engine>& engine, int file, std::uint64_t offset,
                    const void* from, std::size_t bytes, const CallerStream& stream);

// A transfer of no bytes that ends when the stream reaches it; nullopt without a GPU or while the
// stream is captured.
std::optional<Started> mark(Engine& engine, const CallerStream& stream, std::size_t bytes = 0);

std::string explain(Engine& engine, const void* to, const void* from, std::size_t bytes);

}  // namespace waywiser::transfer
