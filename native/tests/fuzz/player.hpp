// One thread of a round: it makes operations in an order that its seed decides, knows which bytes
// each of them has to leave, and which memory they use until when.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fuzz/contexts.hpp"
#include "fuzz/memory.hpp"
#include "fuzz/report.hpp"
#include "fuzz/streams.hpp"

namespace waywiser::fuzz {

// How a function of transfer.h returns: without a handle, when the host's side is free, or with a
// handle.
enum class Form { stream, wait, handle };

// What is the same for all threads of a round.
struct Round {
    std::uint64_t seed = 0;
    int gpus = 1;
    std::size_t region_bytes = 0;
    std::size_t operations = 0;
    bool faulty = false;      // calls of the GPU runtime may fail
    double hang_seconds = 0;  // for which a GPU does not answer; 0: it always answers
    std::size_t threads = 1;
    bool runtime_blocks = false;  // calls of the runtime wait for their streams
    bool keeps_contexts = false;  // none is released: a cancelled transfer would have other bytes
    std::string folder;
    Contexts* contexts = nullptr;
    mutable std::atomic<bool> in_use{false};  // a transfer failed with WAYWISER_IN_USE
};

// What a function is called with.
struct Arguments {
    waywiser_context* context = nullptr;
    void* stream = nullptr;
    double limit = -1;
    waywiser_transfer** transfer = nullptr;
    std::size_t* moved = nullptr;
};

// A call that a player is to make.
struct Call {
    std::string text;
    Form form = Form::stream;
    std::vector<Move> moves;
    std::function<waywiser_status(const Arguments&)> make;
    std::size_t stream = 0;
    bool ordered = true;       // else it is ordered with no stream
    double limit = -1;         // of Form::wait
    std::optional<Span> file;  // what is used of a file; more than moves if its end changes
    std::optional<std::size_t> file_end;  // the file's size afterwards, if it changes
    bool held = false;                    // the stream is busy until the call has returned
    bool invalid = false;                 // has to fail with WAYWISER_INVALID and move nothing
    bool one_range = false;               // of waywiser_copy() and its forms
    bool in_context = true;               // false for work of the caller itself
    // Notes what is expected afterwards, in place of what the moves have to leave. A source of no
    // bytes is none.
    std::function<void()> expect;
};

// A call that was made, until all that it uses is free.
struct Operation {
    struct Use {
        Span span;
        bool write = false;
        bool free = false;  // the host may use it again, whatever the outcome
    };

    std::size_t number = 0;
    std::string text, where;
    Form form = Form::stream;
    std::vector<Move> moves;
    std::vector<Use> uses;
    StreamSet ordered = 0;      // the streams in which later work follows it
    StreamSet source_read = 0;  // the same for what changes its source
    std::size_t bytes = 0;
    std::size_t context = 0, releases = 0;
    waywiser_transfer* transfer = nullptr;
    std::vector<std::size_t> marks;  // the operations that end before this mark
    int descriptor = -1;             // written when it ends
    std::size_t notifications = 0;
    std::size_t finish = 0;  // the way in which its end is waited for
    waywiser_status status = WAYWISER_OK;
    bool failed = false;
};

// What an operation returned, for a comparison of two kinds of contexts.
struct Outcome {
    std::string what;
    waywiser_status status = WAYWISER_OK;
    std::uint64_t value = 0;
    bool certain = true;  // neither a fault nor the time has an influence
};

class Player {
public:
    Player(const Round& round, std::size_t number);
    ~Player();
    Player(const Player&) = delete;
    Player& operator=(const Player&) = delete;

    // All operations of the round, which the table has; then everything is checked.
    void play();
    [[nodiscard]] const std::vector<Outcome>& outcomes() const { return outcomes_; }

    // --- for the operations of the table ---
    [[nodiscard]] const Round& round() const { return round_; }
    [[nodiscard]] Memory& memory() { return memory_; }
    [[nodiscard]] Streams& streams() { return streams_; }
    // A stream for copies between these regions.
    [[nodiscard]] std::size_t draw_stream(Draw& draw, const std::vector<Move>& moves) const;
    // Makes a call, after everything was waited for if it would use what is in use.
    void perform(const Call& call, Draw& draw);
    // A call that moves nothing.
    void query(const std::string& text, Draw& draw,
               const std::function<waywiser_status(waywiser_context*)>& make);
    // Those made with a handle that still have it.
    [[nodiscard]] std::vector<Operation*> with_handle();
    [[nodiscard]] std::deque<Operation>& operations() { return operations_; }
    // The caller may read there afterwards, or write: waits for everything if it may not.
    void make_free(const Span& span, bool write);
    // Calls a function with a time limit; `limit` < 0: it has none.
    waywiser_status timed(const std::string& text, double limit,
                          const std::function<waywiser_status()>& make);
    // Whether a call may return this; else the run ends.
    bool accept_status(const Operation& operation, const std::string& call, waywiser_status status);
    // Later work in the stream follows the operation.
    void order_after(Operation& operation, std::size_t stream);
    // Keeps something until all work is done.
    void keep(std::shared_ptr<void> object) { kept_.push_back(std::move(object)); }
    // Waits until all is done, then checks all memory that was used.
    void settle();
    void replace_context(Draw& draw);
    [[noreturn]] void fail(const std::string& what, const std::string& more = "");
    // Chooses one that the library has said to be the thread's current GPU; a call keeps it.
    void draw_current_gpu(Draw& draw, std::size_t stream, bool& names_gpu) const;

private:
    struct Wrong {
        std::size_t operation = 0;
        Difference difference;
        std::string when;
    };

    [[nodiscard]] Operation make_operation(const Call& call, Draw& draw);
    [[nodiscard]] bool conflicts(const Operation::Use& use, std::optional<std::size_t> stream,
                                 const Operation* except) const;
    void call_library(const Call& call, Operation& operation, Draw& draw);
    [[nodiscard]] bool holds_stream(const Call& call, const std::string& context_kind) const;
    void note_order(const Call& call, Operation& operation);
    void check_call(const Call& call, Operation& operation, std::size_t moved);
    void check_destinations(const Operation& operation, bool host_only, const std::string& when);
    void overwrite_sources(Operation& operation, Draw& draw);
    void finish(Operation& operation);
    void wait_for_notification(Operation& operation);
    waywiser_status result_in_steps(Operation& operation, std::size_t& moved);
    void wait_in_stream(Operation& operation);
    [[nodiscard]] bool overwritten_later(const Operation& operation) const;
    [[nodiscard]] std::vector<bool> uncertain() const;
    void check_all(const std::vector<bool>& unknown);
    void note_outcome(const Operation& operation);
    // Whether its context was released since.
    [[nodiscard]] bool was_released(const Operation& operation) const;

    const Round& round_;
    const std::size_t number_;
    Activity activity_;
    Streams streams_;
    Memory memory_;
    std::deque<Operation> operations_;  // since everything was waited for
    std::vector<std::string> history_;
    std::vector<Wrong> wrong_;
    std::vector<std::shared_ptr<void>> kept_;
    std::vector<Outcome> outcomes_;
    std::set<std::size_t> touched_;  // regions, since everything was checked
    std::size_t made_ = 0;
    bool lost_ = false;
};

std::string status_name(waywiser_status status);

}  // namespace waywiser::fuzz
