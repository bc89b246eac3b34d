// Copies between host memory, GPU memory and files: the C++20 interface, header only, over the C
// interface of libwaywiser_transfer. It needs no CUDA header; a stream is a cudaStream_t.
//
//     waywiser::Context context;
//     context.copy(device, host, bytes, stream);          // as cudaMemcpyAsync
//     auto transfer = context.copy_async(host, device, bytes, stream);
//     transfer.result();                                  // throws waywiser::TransferError
//
// What transfer.h says of ownership, ordering, thread safety and units holds here too. Each call
// has the comment of the C function of the same name there. A failed call throws TransferError.
// Contexts, handles and pinned buffers own what their C functions returned; everything else stays
// the caller's. Arguments that are spans or strings are read during the call only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "waywiser/transfer.h"

namespace waywiser {

// A failed call of the library: its status, and in what() one line with cause and remedy.
class TransferError : public std::runtime_error {
public:
    TransferError(waywiser_status status, const std::string& message, int error, std::size_t moved)
        : std::runtime_error(message), status_(status), errno_(error), moved_(moved) {}
    [[nodiscard]] waywiser_status status() const { return status_; }
    // "WAYWISER_TIMEOUT", say.
    [[nodiscard]] const char* status_name() const { return waywiser_status_name(status_); }
    // The errno value if a file operation failed, else 0.
    [[nodiscard]] int error_number() const { return errno_; }
    // Bytes that had arrived when the transfer failed.
    [[nodiscard]] std::size_t moved() const { return moved_; }

private:
    waywiser_status status_;
    int errno_;
    std::size_t moved_;
};

namespace detail {
inline void check_transfer(waywiser_status status, std::size_t moved = 0) {
    if (status == WAYWISER_OK) return;
    throw TransferError(status, waywiser_last_error(), waywiser_last_errno(), moved);
}
// The text of a function that writes it to an array and returns the size that it needs.
template <class Write>
std::string whole_text(const Write& write) {
    std::size_t needed = 0;
    check_transfer(write(nullptr, 0, &needed));
    std::string text(needed, '\0');
    check_transfer(write(text.data(), text.size(), &needed));
    text.resize(text.find('\0'));
    return text;
}
}  // namespace detail

// A program may compile some files for one default stream and some for the other. The inline
// namespaces give them two distinct StreamRef classes.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
inline namespace per_thread_default_stream {
#else
inline namespace legacy_default_stream {
#endif

// A caller's stream, not owned. A null stream is the default stream that the program is compiled
// for: the legacy one, or the thread's own with CUDA_API_PER_THREAD_DEFAULT_STREAM.
class StreamRef {
public:
    StreamRef() : StreamRef(nullptr) {}
    StreamRef(void* stream)  // NOLINT(google-explicit-constructor): a cudaStream_t is a StreamRef
        : stream_(stream == nullptr ? default_stream() : stream) {}
    template <class Stream>
        requires std::is_pointer_v<Stream>
    StreamRef(Stream stream)  // NOLINT(google-explicit-constructor)
        : StreamRef(static_cast<void*>(stream)) {}
    // The legacy default stream of a GPU, whichever is current.
    static StreamRef legacy_of(int gpu) { return {WAYWISER_LEGACY_STREAM_OF(gpu)}; }
    static StreamRef per_thread_of(int gpu) { return {WAYWISER_PER_THREAD_STREAM_OF(gpu)}; }
    // Ordered with no stream: only for copies of host memory and of files.
    static StreamRef none() { return {WAYWISER_NO_STREAM}; }
    [[nodiscard]] void* get() const { return stream_; }

private:
    static void* default_stream() {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
        return WAYWISER_PER_THREAD_STREAM;
#else
        return nullptr;
#endif
    }

    void* stream_;
};

}  // namespace

// A transfer in progress; it owns the handle, not the memory of the two sides. The destructor does
// not wait: the transfer continues. Threads may call const functions of one handle at once.
class TransferHandle {
public:
    TransferHandle() = default;
    explicit TransferHandle(waywiser_transfer* transfer) : transfer_(transfer) {}
    ~TransferHandle() { waywiser_transfer_release(transfer_); }
    TransferHandle(TransferHandle&& other) noexcept
        : transfer_(std::exchange(other.transfer_, nullptr)) {}
    TransferHandle& operator=(TransferHandle&& other) noexcept {
        std::swap(transfer_, other.transfer_);
        return *this;
    }
    TransferHandle(const TransferHandle&) = delete;
    TransferHandle& operator=(const TransferHandle&) = delete;

    // False for a handle without a transfer.
    explicit operator bool() const { return transfer_ != nullptr; }
    // Whether the transfer has ended, in success or failure.
    [[nodiscard]] bool done() const { return waywiser_transfer_done(transfer_) != 0; }
    // Waits until the transfer has ended, at most `timeout` seconds (negative: without limit);
    // returns the bytes that arrived.
    std::size_t result(double timeout = -1) const {
        std::size_t moved = 0;
        const waywiser_status status = waywiser_transfer_result(transfer_, timeout, &moved);
        detail::check_transfer(status, moved);
        return moved;
    }
    // Blocks until the last device operation is submitted, then orders the stream after it. Fails
    // with WAYWISER_TIMEOUT after `timeout` seconds (negative: without limit).
    void wait(StreamRef stream = {}, double timeout = -1) const {
        detail::check_transfer(waywiser_transfer_wait(transfer_, stream.get(), timeout));
    }
    // Makes the stream wait until the source is read, so that later work in it may change the
    // source. Blocks the host first while source_read_pending() is true. Fails with
    // WAYWISER_TIMEOUT after `timeout` seconds (negative: without limit).
    void wait_source_read(StreamRef stream = {}, double timeout = -1) const {
        detail::check_transfer(
            waywiser_transfer_wait_source_read(transfer_, stream.get(), timeout));
    }
    [[nodiscard]] bool source_read_pending() const {
        return waywiser_transfer_source_read_pending(transfer_) != 0;
    }
    // Writes 8 bytes to the descriptor (an eventfd), which stays the caller's, when the transfer
    // ends. Fails with WAYWISER_IO if the descriptor is not open for writing.
    void notify(int descriptor) const {
        detail::check_transfer(waywiser_transfer_notify(transfer_, descriptor));
    }
    // What is known of the transfer now: does not wait, and does not throw if the transfer failed.
    [[nodiscard]] waywiser_transfer_info query() const {
        waywiser_transfer_info info{};
        info.size = sizeof info;
        detail::check_transfer(waywiser_transfer_query(transfer_, &info));
        return info;
    }
    // Ends the transfer early; result() fails with WAYWISER_CANCELLED then, unless everything was
    // submitted already. The memory is in use until the transfer has ended.
    void cancel() const { detail::check_transfer(waywiser_transfer_cancel(transfer_)); }
    // Calls a function once with the waywiser_transfer_info when the transfer has ended, by a
    // thread of the library, or at once if it has ended. It must neither throw nor wait for
    // transfers.
    template <class Callback>
    void on_end(Callback callback) const {
        auto kept = std::make_unique<Callback>(std::move(callback));
        detail::check_transfer(waywiser_transfer_on_end(
            transfer_,
            [](void* data, const waywiser_transfer_info* info) {
                const std::unique_ptr<Callback> call(static_cast<Callback*>(data));
                (*call)(*info);
            },
            kept.get()));
        kept.release();
    }
    // Not released by the caller.
    [[nodiscard]] waywiser_transfer* get() const { return transfer_; }

private:
    waywiser_transfer* transfer_ = nullptr;
};

// Waits until at least one transfer has ended, at most `timeout` seconds (negative: without limit);
// returns the number of the first that has. Fails with WAYWISER_TIMEOUT if none has. A handle
// without a transfer has ended.
inline std::size_t wait_any(std::span<const TransferHandle> transfers, double timeout = -1) {
    std::vector<waywiser_transfer*> handles;
    handles.reserve(transfers.size());
    for (const TransferHandle& one : transfers) handles.push_back(one.get());
    std::size_t index = 0;
    detail::check_transfer(waywiser_wait_any(handles.data(), handles.size(), timeout, &index));
    return index;
}

// What a context may use. Zero means the default; see waywiser_options in transfer.h.
struct ContextOptions {
    std::size_t threads = 0;
    std::size_t pinned_bytes = 0;
    std::vector<int> relays{};  // NOLINT(readability-redundant-member-init): no warning if omitted
    std::size_t relay_bytes = 0;
    std::size_t max_queued_bytes = 0;
    bool plain = false;
    bool peer_access = true;
    std::size_t list_multiprocessors = 0;
    std::string policy{};  // NOLINT(readability-redundant-member-init): no warning if omitted
    bool quiet = false;
    double spin_seconds = 0;
    std::vector<int> cpus{};        // NOLINT(readability-redundant-member-init): as above
    std::vector<int> numa_nodes{};  // NOLINT(readability-redundant-member-init): as above
    // Receives each warning instead of stderr, in a thread of the context. It may call the library,
    // but not end the context. What it throws is dropped.
    std::function<void(std::string_view line)> log{};  // NOLINT(readability-redundant-member-init)
};

// What a write does when the file has its bytes; see the flags WAYWISER_WRITE_… in transfer.h.
struct WriteEnd {
    bool truncate = false;
    bool sync = false;
    [[nodiscard]] std::uint32_t flags() const {
        return (truncate ? WAYWISER_WRITE_TRUNCATE : 0U) | (sync ? WAYWISER_WRITE_SYNC : 0U);
    }
};

// An array of `count` equal blocks, `stride` bytes from the start of one to the next. Not owned.
template <class Byte>
struct BlockArray {
    Byte* data = nullptr;
    std::size_t stride = 0;
    std::size_t count = 0;
};

// One operation of a transfer; see waywiser_operation in transfer.h. Makes nothing; memory, indexes
// and files stay the caller's.
struct TransferOperation : waywiser_operation {
    static TransferOperation copy(void* to, const void* from, std::size_t bytes) {
        TransferOperation made = of(WAYWISER_COPY);
        made.to = to;
        made.from = from;
        made.bytes = bytes;
        return made;
    }
    // Block from_index[i] is copied to block to_index[i], `block` bytes each. The indexes must have
    // the same length, and are read when the operation is submitted.
    static TransferOperation blocks(BlockArray<void> to, BlockArray<const void> from,
                                    std::size_t block, std::span<const std::int64_t> to_index,
                                    std::span<const std::int64_t> from_index) {
        if (to_index.size() != from_index.size()) {
            throw TransferError(WAYWISER_INVALID, "blocks: the two indices differ in length", 0, 0);
        }
        TransferOperation made = copy(to.data, from.data, block);
        made.kind = WAYWISER_BLOCKS;
        made.to_stride = to.stride;
        made.to_blocks = to.count;
        made.from_stride = from.stride;
        made.from_blocks = from.count;
        made.to_index = to_index.data();
        made.from_index = from_index.data();
        made.count = to_index.size();
        return made;
    }
    static TransferOperation read(int file, std::uint64_t offset, void* to, std::size_t bytes) {
        TransferOperation made = copy(to, nullptr, bytes);
        made.kind = WAYWISER_READ;
        made.file = file;
        made.offset = offset;
        return made;
    }
    static TransferOperation write(int file, std::uint64_t offset, const void* from,
                                   std::size_t bytes, WriteEnd end = {}) {
        TransferOperation made = copy(nullptr, from, bytes);
        made.kind = WAYWISER_WRITE;
        made.file = file;
        made.offset = offset;
        made.write_flags = end.flags();
        return made;
    }

private:
    static TransferOperation of(waywiser_operation_kind kind) {
        TransferOperation made{};
        made.size = sizeof(waywiser_operation);
        made.kind = kind;
        return made;
    }
};
static_assert(sizeof(TransferOperation) == sizeof(waywiser_operation));

// Operations that are submitted again and again; see waywiser_plan_create(). It owns copies of the
// indexes. Their memory must stay allocated and registered as it is. Thread safe.
class TransferPlan {
public:
    TransferPlan() = default;
    explicit TransferPlan(waywiser_plan* plan) : plan_(plan) {}
    ~TransferPlan() { waywiser_plan_release(plan_); }
    TransferPlan(TransferPlan&& other) noexcept : plan_(std::exchange(other.plan_, nullptr)) {}
    TransferPlan& operator=(TransferPlan&& other) noexcept {
        std::swap(plan_, other.plan_);
        return *this;
    }
    TransferPlan(const TransferPlan&) = delete;
    TransferPlan& operator=(const TransferPlan&) = delete;

    // Returns at once.
    [[nodiscard]] TransferHandle submit(StreamRef stream = {}) const {
        waywiser_transfer* transfer = nullptr;
        detail::check_transfer(waywiser_plan_submit(plan_, stream.get(), 0, &transfer));
        return TransferHandle(transfer);
    }
    // Ordered in the stream, like Context::copy().
    void submit_in_stream(StreamRef stream = {}) const {
        detail::check_transfer(
            waywiser_plan_submit(plan_, stream.get(), WAYWISER_IN_STREAM, nullptr));
    }
    // Not released by the caller.
    [[nodiscard]] waywiser_plan* get() const { return plan_; }

private:
    waywiser_plan* plan_ = nullptr;
};

// Threads and staging memory that transfers share. Thread safe. The destructor cancels transfers
// that wait for their stream and waits for those that its threads have started. Copies of the GPU
// runtime (pinned memory, lists, small copies) continue in their stream. Calls on a context that
// was moved from fail with WAYWISER_INVALID.
class Context {
public:
    explicit Context(const ContextOptions& options = {}) {
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
        plain.policy = options.policy.c_str();
        plain.quiet = options.quiet ? 1 : 0;
        plain.spin_seconds = options.spin_seconds;
        plain.cpus = options.cpus.data();
        plain.cpu_count = options.cpus.size();
        plain.numa_nodes = options.numa_nodes.data();
        plain.numa_node_count = options.numa_nodes.size();
        if (options.log) {
            log_ = std::make_unique<Log>(options.log);
            plain.log = &call_log;
            plain.log_data = log_.get();
        }
        detail::check_transfer(waywiser_context_create(&plain, &context_));
    }
    ~Context() { waywiser_context_release(context_); }
    Context(Context&& other) noexcept
        : log_(std::move(other.log_)), context_(std::exchange(other.context_, nullptr)) {}
    // Ends the context that this was first.
    Context& operator=(Context&& other) noexcept {
        if (this == &other) return *this;
        waywiser_context_release(std::exchange(context_, std::exchange(other.context_, nullptr)));
        log_ = std::move(other.log_);
        return *this;
    }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    // Moves several operations as one transfer, in any order among themselves. Returns at once.
    [[nodiscard]] TransferHandle submit(std::span<const TransferOperation> operations,
                                        StreamRef stream = {}) {
        return made([&](waywiser_transfer** transfer) {
            return waywiser_submit(context_, operations.data(), operations.size(), stream.get(), 0,
                                   transfer);
        });
    }
    // The same, ordered in the stream like copy().
    void submit_in_stream(std::span<const TransferOperation> operations, StreamRef stream = {}) {
        detail::check_transfer(waywiser_submit(context_, operations.data(), operations.size(),
                                               stream.get(), WAYWISER_IN_STREAM, nullptr));
    }
    // The same, but returns like copy_and_wait(), and sets what the caller passes: whether a GPU's
    // side is free too, and the bytes of files that were moved.
    [[nodiscard]] TransferHandle submit_and_wait(std::span<const TransferOperation> operations,
                                                 StreamRef stream = {}, double timeout = -1,
                                                 bool* ended = nullptr,
                                                 std::size_t* moved = nullptr) {
        return made_and_ended(ended, [&](int* flag, waywiser_transfer** left) {
            return waywiser_submit_and_wait(context_, operations.data(), operations.size(),
                                            stream.get(), timeout, flag, moved, left);
        });
    }
    // Checks and keeps operations that are submitted again and again.
    [[nodiscard]] TransferPlan plan(std::span<const TransferOperation> operations) {
        waywiser_plan* plan = nullptr;
        detail::check_transfer(
            waywiser_plan_create(context_, operations.data(), operations.size(), &plan));
        return TransferPlan(plan);
    }

    // Like cudaMemcpyAsync: ordered in the stream. With pageable memory, returns when the host's
    // side is free.
    void copy(void* to, const void* from, std::size_t bytes, StreamRef stream = {}) {
        detail::check_transfer(waywiser_copy(context_, to, from, bytes, stream.get()));
    }
    // Like copy(), but returns when a host destination is filled and a host source can be reused,
    // also if it is pinned. The handle is empty, unless that is not so after `timeout` seconds
    // (negative: without limit): then it is that of the copy, which goes on. *ended, if given:
    // whether a GPU's side is free too.
    [[nodiscard]] TransferHandle copy_and_wait(void* to, const void* from, std::size_t bytes,
                                               StreamRef stream = {}, double timeout = -1,
                                               bool* ended = nullptr) {
        return made_and_ended(ended, [&](int* flag, waywiser_transfer** left) {
            return waywiser_copy_and_wait(context_, to, from, bytes, stream.get(), timeout, flag,
                                          left);
        });
    }
    // Returns at once. The copy starts after the work that is in the stream at the call.
    [[nodiscard]] TransferHandle copy_async(void* to, const void* from, std::size_t bytes,
                                            StreamRef stream = {}) {
        return made([&](waywiser_transfer** transfer) {
            return waywiser_copy_async(context_, to, from, bytes, stream.get(), transfer);
        });
    }

    // Copies sizes[i] bytes from from[i] to to[i], in any order.
    void copy_batch(std::span<void* const> to, std::span<const void* const> from,
                    std::span<const std::size_t> sizes, StreamRef stream = {}) {
        detail::check_transfer(batch(to, from, sizes, stream, nullptr));
    }
    [[nodiscard]] TransferHandle copy_batch_and_wait(std::span<void* const> to,
                                                     std::span<const void* const> from,
                                                     std::span<const std::size_t> sizes,
                                                     StreamRef stream = {}, double timeout = -1,
                                                     bool* ended = nullptr) {
        check_batch(to, from, sizes);
        return made_and_ended(ended, [&](int* flag, waywiser_transfer** left) {
            return waywiser_copy_batch_and_wait(context_, to.data(), from.data(), sizes.data(),
                                                to.size(), stream.get(), timeout, flag, left);
        });
    }
    [[nodiscard]] TransferHandle copy_batch_async(std::span<void* const> to,
                                                  std::span<const void* const> from,
                                                  std::span<const std::size_t> sizes,
                                                  StreamRef stream = {}) {
        return made(
            [&](waywiser_transfer** transfer) { return batch(to, from, sizes, stream, transfer); });
    }

    // Copies block from_index[i] to block to_index[i], `block` bytes each, in any order.
    void copy_blocks(BlockArray<void> to, BlockArray<const void> from, std::size_t block,
                     std::span<const std::int64_t> to_index,
                     std::span<const std::int64_t> from_index, StreamRef stream = {}) {
        detail::check_transfer(blocks(to, from, block, to_index, from_index, stream, nullptr));
    }
    [[nodiscard]] TransferHandle copy_blocks_and_wait(
        BlockArray<void> to, BlockArray<const void> from, std::size_t block,
        std::span<const std::int64_t> to_index, std::span<const std::int64_t> from_index,
        StreamRef stream = {}, double timeout = -1, bool* ended = nullptr) {
        check_blocks(to_index, from_index);
        return made_and_ended(ended, [&](int* flag, waywiser_transfer** left) {
            return waywiser_copy_blocks_and_wait(context_, to.data, to.stride, to.count, from.data,
                                                 from.stride, from.count, block, to_index.data(),
                                                 from_index.data(), to_index.size(), stream.get(),
                                                 timeout, flag, left);
        });
    }
    [[nodiscard]] TransferHandle copy_blocks_async(BlockArray<void> to, BlockArray<const void> from,
                                                   std::size_t block,
                                                   std::span<const std::int64_t> to_index,
                                                   std::span<const std::int64_t> from_index,
                                                   StreamRef stream = {}) {
        return made([&](waywiser_transfer** transfer) {
            return blocks(to, from, block, to_index, from_index, stream, transfer);
        });
    }

    // Copies pieces of one GPU's memory to the host beside the stream. Call wait_source_read() of
    // the handle before a source is changed.
    [[nodiscard]] TransferHandle snapshot(std::span<void* const> to,
                                          std::span<const void* const> from,
                                          std::span<const std::size_t> sizes,
                                          StreamRef stream = {}) {
        check_batch(to, from, sizes);
        return made([&](waywiser_transfer** transfer) {
            return waywiser_snapshot(context_, to.data(), from.data(), sizes.data(), to.size(),
                                     stream.get(), transfer);
        });
    }

    // Returns the bytes that were read from `offset` of an open file: fewer than asked for only at
    // the end of the file.
    std::size_t read(int file, std::uint64_t offset, void* to, std::size_t bytes,
                     StreamRef stream = {}) {
        std::size_t moved = 0;
        const waywiser_status status =
            waywiser_read(context_, file, offset, to, bytes, stream.get(), &moved, nullptr);
        detail::check_transfer(status, moved);
        return moved;
    }
    // Like read(), which sets `moved`, but waits for the stream at most `timeout` seconds
    // (negative: without limit). Returns the transfer if it has not begun by then: it follows the
    // stream, the file and the memory stay in use, and `moved` is 0.
    [[nodiscard]] TransferHandle read_and_wait(int file, std::uint64_t offset, void* to,
                                               std::size_t bytes, std::size_t& moved,
                                               StreamRef stream = {}, double timeout = -1,
                                               bool* ended = nullptr) {
        waywiser_transfer* left = nullptr;
        int flag = 0;
        const waywiser_status status = waywiser_read_and_wait(
            context_, file, offset, to, bytes, stream.get(), timeout, &flag, &moved, &left);
        detail::check_transfer(status, moved);
        if (ended != nullptr) *ended = flag != 0;
        return TransferHandle(left);
    }
    // The file must stay open until the transfer has ended.
    [[nodiscard]] TransferHandle read_async(int file, std::uint64_t offset, void* to,
                                            std::size_t bytes, StreamRef stream = {}) {
        return made([&](waywiser_transfer** transfer) {
            return waywiser_read(context_, file, offset, to, bytes, stream.get(), nullptr,
                                 transfer);
        });
    }
    // Returns the bytes that were written: all.
    std::size_t write(int file, std::uint64_t offset, const void* from, std::size_t bytes,
                      StreamRef stream = {}, WriteEnd end = {}) {
        std::size_t moved = 0;
        const waywiser_status status = waywiser_write(context_, file, offset, from, bytes,
                                                      end.flags(), stream.get(), &moved, nullptr);
        detail::check_transfer(status, moved);
        return moved;
    }
    // As read_and_wait().
    [[nodiscard]] TransferHandle write_and_wait(int file, std::uint64_t offset, const void* from,
                                                std::size_t bytes, std::size_t& moved,
                                                StreamRef stream = {}, double timeout = -1,
                                                WriteEnd end = {}, bool* ended = nullptr) {
        waywiser_transfer* left = nullptr;
        int flag = 0;
        const waywiser_status status =
            waywiser_write_and_wait(context_, file, offset, from, bytes, end.flags(), stream.get(),
                                    timeout, &flag, &moved, &left);
        detail::check_transfer(status, moved);
        if (ended != nullptr) *ended = flag != 0;
        return TransferHandle(left);
    }
    [[nodiscard]] TransferHandle write_async(int file, std::uint64_t offset, const void* from,
                                             std::size_t bytes, StreamRef stream = {},
                                             WriteEnd end = {}) {
        return made([&](waywiser_transfer** transfer) {
            return waywiser_write(context_, file, offset, from, bytes, end.flags(), stream.get(),
                                  nullptr, transfer);
        });
    }

    // A transfer that ends when the work in the stream at the call is done. Empty without a GPU or
    // while the stream is captured.
    [[nodiscard]] TransferHandle mark(StreamRef stream = {}) {
        return made([&](waywiser_transfer** transfer) {
            return waywiser_mark(context_, stream.get(), transfer);
        });
    }

    // One line that describes how a copy would be done.
    [[nodiscard]] std::string explain(const void* to, const void* from, std::size_t bytes) const {
        std::string text(1024, '\0');
        detail::check_transfer(
            waywiser_explain(context_, to, from, bytes, text.data(), text.size()));
        text.resize(text.find('\0'));
        return text;
    }
    // How copy() would copy, as a value.
    [[nodiscard]] waywiser_method copy_method(const void* to, const void* from,
                                              std::size_t bytes) const {
        waywiser_method method = WAYWISER_METHOD_NONE;
        detail::check_transfer(waywiser_copy_method(context_, to, from, bytes, &method));
        return method;
    }
    // How copy_batch() or copy_blocks() would be done: a line for each method, joined by line
    // feeds.
    [[nodiscard]] std::string explain_batch(std::span<void* const> to,
                                            std::span<const void* const> from,
                                            std::span<const std::size_t> sizes) const {
        check_batch(to, from, sizes);
        return detail::whole_text([&](char* text, std::size_t capacity, std::size_t* needed) {
            return waywiser_explain_batch(context_, to.data(), from.data(), sizes.data(), to.size(),
                                          text, capacity, needed);
        });
    }
    [[nodiscard]] std::string explain_blocks(BlockArray<void> to, BlockArray<const void> from,
                                             std::size_t block,
                                             std::span<const std::int64_t> to_index,
                                             std::span<const std::int64_t> from_index) const {
        check_blocks(to_index, from_index);
        return detail::whole_text([&](char* text, std::size_t capacity, std::size_t* needed) {
            return waywiser_explain_blocks(
                context_, to.data, to.stride, to.count, from.data, from.stride, from.count, block,
                to_index.data(), from_index.data(), to_index.size(), text, capacity, needed);
        });
    }
    // What the context uses now: bytes, and numbers of threads and transfers.
    [[nodiscard]] waywiser_usage usage() const {
        waywiser_usage usage{};
        usage.size = sizeof usage;
        detail::check_transfer(waywiser_context_usage(context_, &usage));
        return usage;
    }
    // What the context has moved by all methods since it was made, and what its threads have waited
    // for.
    [[nodiscard]] waywiser_stats stats() const {
        waywiser_stats stats{};
        stats.size = sizeof stats;
        detail::check_transfer(waywiser_context_stats(context_, &stats));
        return stats;
    }
    // What it has moved by one method.
    [[nodiscard]] waywiser_method_stats stats(waywiser_method method) const {
        waywiser_method_stats stats{};
        stats.size = sizeof stats;
        detail::check_transfer(waywiser_context_method_stats(context_, method, &stats));
        return stats;
    }
    // All warnings so far, one line each.
    [[nodiscard]] std::string warnings() const {
        return detail::whole_text([&](char* text, std::size_t capacity, std::size_t* needed) {
            return waywiser_context_warnings(context_, text, capacity, needed);
        });
    }
    // Not released by the caller.
    [[nodiscard]] waywiser_context* get() const { return context_; }

private:
    // The handle that a call of the library returns, if it returns one.
    template <class Call>
    static TransferHandle made(const Call& call) {
        waywiser_transfer* transfer = nullptr;
        detail::check_transfer(call(&transfer));
        return TransferHandle(transfer);
    }
    template <class Call>
    static TransferHandle made_and_ended(bool* ended, const Call& call) {
        int flag = 0;
        TransferHandle left =
            made([&](waywiser_transfer** transfer) { return call(&flag, transfer); });
        if (ended != nullptr) *ended = flag != 0;
        return left;
    }
    static void check_batch(std::span<void* const> to, std::span<const void* const> from,
                            std::span<const std::size_t> sizes) {
        if (to.size() == from.size() && to.size() == sizes.size()) return;
        throw TransferError(WAYWISER_INVALID,
                            "copy_batch: destinations, sources and sizes differ in number", 0, 0);
    }
    static void check_blocks(std::span<const std::int64_t> to_index,
                             std::span<const std::int64_t> from_index) {
        if (to_index.size() == from_index.size()) return;
        throw TransferError(WAYWISER_INVALID, "copy_blocks: the two indices differ in length", 0,
                            0);
    }
    waywiser_status batch(std::span<void* const> to, std::span<const void* const> from,
                          std::span<const std::size_t> sizes, StreamRef stream,
                          waywiser_transfer** transfer) {
        check_batch(to, from, sizes);
        return waywiser_copy_batch(context_, to.data(), from.data(), sizes.data(), to.size(),
                                   stream.get(), transfer);
    }
    waywiser_status blocks(const BlockArray<void>& to, const BlockArray<const void>& from,
                           std::size_t block, std::span<const std::int64_t> to_index,
                           std::span<const std::int64_t> from_index, StreamRef stream,
                           waywiser_transfer** transfer) {
        check_blocks(to_index, from_index);
        return waywiser_copy_blocks(context_, to.data, to.stride, to.count, from.data, from.stride,
                                    from.count, block, to_index.data(), from_index.data(),
                                    to_index.size(), stream.get(), transfer);
    }

    using Log = std::function<void(std::string_view)>;
    static void call_log(void* log, const char* line) {
        try {
            (*static_cast<const Log*>(log))(line);
        } catch (...) {  // NOLINT(bugprone-empty-catch): the thread is the library's
        }
    }

    std::unique_ptr<Log> log_;  // the address stays when the context is moved
    waywiser_context* context_ = nullptr;
};

// The kind and place of memory, over the whole range.
inline waywiser_description describe(const void* data, std::size_t bytes) {
    waywiser_description description{};
    description.size = sizeof description;
    detail::check_transfer(waywiser_describe(data, bytes, &description));
    return description;
}

// The machine as this process may use it, as JSON.
inline std::string machine_json() { return detail::whole_text(&waywiser_machine); }

// Owns pinned memory of `bytes` at a NUMA node (-1: the node of the calling thread); pageable
// memory without a GPU. Independent of any context. The destructor waits for the GPUs that may use
// it.
class PinnedBuffer {
public:
    explicit PinnedBuffer(std::size_t bytes, int numa = -1) : bytes_(bytes) {
        detail::check_transfer(waywiser_pinned_alloc(bytes, numa, &data_));
    }
    ~PinnedBuffer() { waywiser_pinned_free(data_); }
    PinnedBuffer(PinnedBuffer&& other) noexcept
        : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
        if (this == &other) return *this;
        bytes_ = std::exchange(other.bytes_, 0);
        waywiser_pinned_free(std::exchange(data_, std::exchange(other.data_, nullptr)));
        return *this;
    }
    PinnedBuffer(const PinnedBuffer&) = delete;
    PinnedBuffer& operator=(const PinnedBuffer&) = delete;
    [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    std::size_t bytes_;
    void* data_ = nullptr;
};

// Memory that the program owns, page-locked for all GPUs as long as this lives; see
// waywiser_register(). The destructor waits for the GPUs that may use it; the memory must still
// exist then.
class PinnedRegistration {
public:
    PinnedRegistration(void* data, std::size_t bytes) : bytes_(bytes) {
        detail::check_transfer(waywiser_register(data, bytes));
        data_ = data;
    }
    template <class T, std::size_t Extent>
        requires(!std::is_const_v<T>)
    explicit PinnedRegistration(std::span<T, Extent> memory)
        : PinnedRegistration(memory.data(), memory.size_bytes()) {}
    ~PinnedRegistration() {
        if (data_ != nullptr) waywiser_unregister(data_);
    }
    PinnedRegistration(PinnedRegistration&& other) noexcept
        : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
    PinnedRegistration& operator=(PinnedRegistration&& other) noexcept {
        if (this == &other) return *this;
        bytes_ = std::exchange(other.bytes_, 0);
        void* const before = std::exchange(data_, std::exchange(other.data_, nullptr));
        if (before != nullptr) waywiser_unregister(before);
        return *this;
    }
    PinnedRegistration(const PinnedRegistration&) = delete;
    PinnedRegistration& operator=(const PinnedRegistration&) = delete;
    // Unregisters the memory now. Unlike the destructor it throws if that fails, and the memory is
    // registered then. Does nothing the second time.
    void release() {
        if (data_ == nullptr) return;
        detail::check_transfer(waywiser_unregister(data_));
        bytes_ = 0;
        data_ = nullptr;
    }
    [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    std::size_t bytes_;
    void* data_ = nullptr;
};

// Pinned memory for containers of std::pmr, each allocation as by PinnedBuffer: whole pages, and
// slow to make and to free. Put a std::pmr::synchronized_pool_resource above it for small ones.
// Thread safe. Throws std::bad_alloc.
class PinnedResource : public std::pmr::memory_resource {
public:
    explicit PinnedResource(int numa = -1) : numa_(numa) {}

private:
    // waywiser_pinned_alloc() aligns to pages. A greater alignment begins behind the first page,
    // and the word before it is the start of the allocation.
    static constexpr std::size_t kPage = 4096;

    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        const std::size_t more = alignment <= kPage ? 0 : alignment + kPage;
        void* start = nullptr;
        if (bytes > SIZE_MAX - more ||
            waywiser_pinned_alloc(bytes + more, numa_, &start) != WAYWISER_OK) {
            throw std::bad_alloc();
        }
        if (more == 0) return start;
        void* aligned = static_cast<std::byte*>(start) + kPage;
        std::size_t space = bytes + alignment;
        std::align(alignment, bytes, aligned, space);
        static_cast<void**>(aligned)[-1] = start;
        return aligned;
    }
    void do_deallocate(void* data, std::size_t /*bytes*/, std::size_t alignment) override {
        waywiser_pinned_free(alignment <= kPage ? data : static_cast<void**>(data)[-1]);
    }
    // Whether one frees what the other allocates: nodes do not matter for that.
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
#if defined(__cpp_rtti)
        return dynamic_cast<const PinnedResource*>(&other) != nullptr;
#else
        return this == &other;
#endif
    }

    int numa_;
};

}  // namespace waywiser
