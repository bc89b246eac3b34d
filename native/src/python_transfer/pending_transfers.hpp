// Transfers in progress with the objects that own their memory, which live until the host has seen
// the end. Everything needs the GIL unless it says otherwise.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operand.hpp"
#include "streams.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

// A file that the library opened, or its duplicate of the descriptor of a caller's file.
class File {
public:
    File() = default;
    // `call`: the file and what is done with it, for messages: "read 'weights.bin'".
    explicit File(int descriptor, std::string call = {})
        : descriptor_(descriptor), call_(std::move(call)) {}
    File(File&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)), call_(std::move(other.call_)) {}
    File& operator=(File&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        std::swap(call_, other.call_);
        return *this;
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();
    [[nodiscard]] int descriptor() const { return descriptor_; }
    // The same file with a descriptor of its own. Needs the GIL, and raises TransferFileError.
    [[nodiscard]] File duplicate() const;
    // Releases ownership: the caller must close it.
    [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }
    [[nodiscard]] const std::string& call() const { return call_; }

private:
    int descriptor_ = -1;
    std::string call_;
};

// A file alone; none if it has no descriptor.
std::vector<File> files_of(File file);

// A transfer of the library, and what it uses until it has ended.
struct StartedTransfer {
    waywiser_transfer* transfer = nullptr;  // null: nothing is in flight, and `bytes` have arrived
    std::size_t bytes = 0;
    std::size_t moved_before = 0;  // bytes that had arrived before it, beside its own
    Held held;
    Streams streams;
    std::vector<File> files;
    std::string file_call;  // names the file in messages, if there is only one
};

// What is known of a transfer at one moment.
struct TransferState {
    bool ended = false;
    std::size_t moved = 0;
    std::size_t bytes = 0;
    nanobind::object error;  // what wait() would raise, or None
};

class PendingTransfer {
public:
    explicit PendingTransfer(StartedTransfer started);
    ~PendingTransfer();
    PendingTransfer(const PendingTransfer&) = delete;
    PendingTransfer& operator=(const PendingTransfer&) = delete;

    [[nodiscard]] bool done();
    // Waits without the GIL, in intervals between which signals are handled. Returns the bytes that
    // arrived. Raises what the transfer failed with, and TransferTimeout after `seconds`.
    std::size_t wait(std::optional<double> seconds);
    // Waits in the same way until one of the transfers has ended: the index of the first that has.
    // Raises InvalidTransfer if there is none.
    static std::size_t wait_any(std::span<const std::shared_ptr<PendingTransfer>> all,
                                std::optional<double> seconds);
    [[nodiscard]] TransferState query();
    // Ends the transfer early, and does not wait for its end.
    void cancel();
    // Waits like wait() until all is submitted, then orders the stream; without one, those of the
    // call.
    void order(const std::optional<void*>& stream);
    // Makes the stream, or those of the call, wait until the source is read.
    void order_change(const std::optional<void*>& stream);
    // Whether that would block the host now.
    [[nodiscard]] bool source_read_pending() const;
    // A descriptor that becomes readable at the end. The caller must close it.
    int descriptor();
    [[nodiscard]] bool settled() const { return settled_; }
    [[nodiscard]] bool of_this_process() const;

private:
    void settle(waywiser_status status);
    void check_process() const;
    void notify_event();
    using OrderCall = waywiser_status (*)(waywiser_transfer*, void*, double);
    void order_by(OrderCall call, const std::optional<void*>& stream);
    void order_stream(OrderCall call, void* stream);

    waywiser_transfer* transfer_;
    std::size_t bytes_;
    std::size_t moved_before_;
    Held held_;
    Streams streams_;
    std::vector<File> files_;
    const std::string file_call_;
    File event_;
    unsigned notifying_ = 0;  // calls that are registering event_ with the library
    unsigned process_;
    bool settled_ = false;
};

// Keeps a transfer that no thread waits for now.
void keep(const std::shared_ptr<PendingTransfer>& pending);
// Releases some of the transfers that have ended; called by every call.
void prune();
// The same for all transfers, at the end of the interpreter.
void prune_all();
}  // namespace waywiser::python
