#include "operations.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "block_index.hpp"
#include "errors.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

enum class OperationKind { copy, blocks, read, write };

// The classes of the operations in the order of their kinds. They are never unloaded.
const std::array<nb::object, 4>& operation_classes() {
    static const auto& classes = *new std::array<nb::object, 4>([] {
        const nb::module_ module = nb::module_::import_("waywiser.transfer.operations");
        return std::array<nb::object, 4>{module.attr("Copy"), module.attr("CopyBlocks"),
                                         module.attr("Read"), module.attr("Write")};
    }());
    return classes;
}

OperationKind kind_of(nb::handle object, std::size_t operation) {
    const auto& classes = operation_classes();
    for (std::size_t i = 0; i < classes.size(); ++i) {
        if (nb::isinstance(object, classes[i])) return static_cast<OperationKind>(i);
    }
    raise(Failure::invalid_operand,
          {.what = operation_text(operation) + " is " + given(object) + ", not an operation",
           .remedy = "pass Copy, CopyBlocks, Read or Write of waywiser.transfer"});
}

// A new tuple: the attributes of an operand may run code that changes the caller's list.
nb::tuple operations_of(nb::handle objects) {
    PyObject* const all = PySequence_Tuple(objects.ptr());
    if (all != nullptr) return nb::steal<nb::tuple>(all);
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();
    raise(Failure::invalid_operand,
          {.what = "operations is " + given(objects) + ", not a sequence of operations",
           .remedy = "pass a list of Copy, CopyBlocks, Read and Write of waywiser.transfer"});
}

// Memory that an operation reads or writes.
struct OperationMemory {
    std::uintptr_t begin = 0, end = 0;
    bool is_written = false;
    std::size_t operation = 0;
};

using OperationMemories = std::vector<OperationMemory>;

void add_memory(OperationMemories& all, const void* data, std::size_t bytes, bool is_written,
                std::size_t operation) {
    if (bytes == 0) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    all.push_back({begin, begin + bytes, is_written, operation});
}

// Calls add(to, from, bytes) for each piece of a copy; its indexes are in range.
template <class Add>
void for_each_piece(const Submission& copy, const Add& add) {
    for (std::size_t i = 0; i < copy.pieces(); ++i) {
        const PieceView one = copy.list.count() > 0 ? copy.list.at(i) : copy.blocks.at(i);
        add(one.to, one.from, one.bytes);
    }
    if (!copy.listed() && copy.bytes > 0) add(copy.to, copy.from, copy.bytes);
}

[[noreturn]] void reject_meeting(std::size_t one, std::size_t other) {
    const auto [first, second] = std::minmax(one, other);
    if (first == second) {
        raise(Failure::invalid_transfer,
              {.what = operation_text(first) + " writes memory twice, or reads what it writes",
               .remedy = "give each destination once, and copy through a third array"});
    }
    raise(Failure::invalid_transfer,
          {.what = "operations " + std::to_string(first) + " and " + std::to_string(second) +
                   " share memory that one of them writes",
           .remedy = "submit them one after the other"});
}

// Raises if memory that is written is that of another entry.
void check_apart(OperationMemories all) {
    std::ranges::sort(all, {}, &OperationMemory::begin);
    const OperationMemory* furthest = nullptr;
    const OperationMemory* furthest_written = nullptr;
    const auto extend = [](const OperationMemory*& last, const OperationMemory& one) {
        if (last == nullptr || one.end > last->end) last = &one;
    };
    for (const OperationMemory& one : all) {
        const OperationMemory* const before = one.is_written ? furthest : furthest_written;
        if (before != nullptr && one.begin < before->end) {
            reject_meeting(before->operation, one.operation);
        }
        extend(furthest, one);
        if (one.is_written) extend(furthest_written, one);
    }
}

waywiser_operation empty_operation(waywiser_operation_kind kind) {
    waywiser_operation one{};
    one.size = sizeof one;
    one.kind = kind;
    return one;
}

void describe(const Submission& copy, std::vector<waywiser_operation>& all) {
    if (copy.blocks.count() > 0) {
        const BlockList& blocks = copy.blocks;
        waywiser_operation one = empty_operation(WAYWISER_BLOCKS);
        one.to = blocks.to;
        one.from = blocks.from;
        one.bytes = blocks.block;
        one.to_stride = static_cast<std::size_t>(blocks.to_stride);
        one.from_stride = static_cast<std::size_t>(blocks.from_stride);
        one.to_blocks = blocks.to_blocks;
        one.from_blocks = blocks.from_blocks;
        one.to_index = blocks.to_index.entries.data();
        one.from_index = blocks.from_index.entries.data();
        one.count = blocks.count();
        all.push_back(one);
        return;
    }
    for_each_piece(copy, [&](void* to, const void* from, std::size_t bytes) {
        waywiser_operation one = empty_operation(WAYWISER_COPY);
        one.to = to;
        one.from = from;
        one.bytes = bytes;
        all.push_back(one);
    });
}

void describe(const FileCall& call, std::vector<waywiser_operation>& all) {
    // A write of no bytes may still cut the file.
    if (call.bytes == 0 && call.flags == 0) return;
    const bool reads = call.direction == Direction::read;
    waywiser_operation one = empty_operation(reads ? WAYWISER_READ : WAYWISER_WRITE);
    one.to = reads ? call.data : nullptr;
    one.from = reads ? nullptr : call.data;
    one.bytes = call.bytes;
    one.file = call.file.descriptor();
    one.offset = call.offset;
    one.write_flags = call.flags;
    all.push_back(one);
}

}  // namespace

void CommonStreams::add(const Streams& streams, const void* memory, std::size_t operation) {
    const bool on_gpu = memory != nullptr;
    if (!first_ || (on_gpu && !on_gpu_)) {  // host memory is used in no stream
        first_ = operation;
        on_gpu_ = on_gpu;
        streams_ = streams;
        if (streams.gpu == kSomeGpu) streams_.gpu = gpu_at(memory);
        return;
    }
    if (!on_gpu || !compares_) return;
    if (streams.carrier == streams_.carrier && streams.other == streams_.other) return;
    raise(Failure::unsupported,
          {.what = "its arrays are used in another stream than those of " + operation_text(*first_),
           .remedy = "order the streams and pass stream=, or submit the operations of each stream "
                     "apart"});
}

PreparedOperations::PreparedOperations(const Context& context, nb::handle operations,
                                       const std::optional<void*>& requested, bool one_stream)
    : objects_(operations_of(operations)), requested_(requested) {
    CommonStreams streams(one_stream && !requested);
    copies_.reserve(objects_.size());
    for (std::size_t i = 0; i < objects_.size(); ++i) add(context, i, streams);
    streams_ = streams.all();
}

nb::object PreparedOperations::argument(std::size_t operation, const char* name) const {
    return objects_[operation].attr(name);
}

void PreparedOperations::add(const Context& context, std::size_t operation,
                             CommonStreams& streams) {
    switch (kind_of(objects_[operation], operation)) {
        case OperationKind::copy: return add_copy(context, operation, streams);
        case OperationKind::blocks: return add_blocks(context, operation, streams);
        case OperationKind::read: return add_file(context, operation, Direction::read, streams);
        case OperationKind::write: return add_file(context, operation, Direction::write, streams);
    }
}

void PreparedOperations::add_copy(const Context& context, std::size_t operation,
                                  CommonStreams& streams) {
    constexpr const char* kCall = "copy";
    const CallScope here(kCall, operation);
    Submission copy;
    const Pair pair(context, argument(operation, "dst"), argument(operation, "src"), requested_,
                    kCall, copy.kept);
    set_places(pair, requested_, copy);
    place(operation, &pair.to, &pair.from, copy.streams, streams);
    if (has_too_many_pieces(pair.to, pair.from, kCall)) {
        long_copies_.push_back(copies_.size());
    } else if (!is_in_place(pair)) {
        set_memory(pair, copy);
    }
    count_pieces(copy);
    copies_.push_back({operation, std::move(copy)});
}

void PreparedOperations::add_blocks(const Context& context, std::size_t operation,
                                    CommonStreams& streams) {
    const CallScope here("copy_blocks", operation);
    const nb::object to = argument(operation, "dst");
    const nb::object from = argument(operation, "src");
    const nb::object to_index = argument(operation, "dst_index");
    const nb::object from_index = argument(operation, "src_index");
    BlockOperands blocks{.to = to, .from = from, .to_index = to_index, .from_index = from_index};
    Submission copy = blocks_submission(context, blocks, requested_);
    place(operation, &blocks.destination, &blocks.source, copy.streams, streams);
    count_pieces(copy);
    copies_.push_back({operation, std::move(copy)});
}

void PreparedOperations::add_file(const Context& context, std::size_t operation,
                                  Direction direction, CommonStreams& streams) {
    const CallScope here(text(direction), operation);
    const bool reads = direction == Direction::read;
    const std::uint32_t flags =
        reads ? 0 : flags_of(argument(operation, "truncate"), argument(operation, "sync"));
    FileCall call =
        prepare_memory(context, direction, argument(operation, reads ? "dst" : "src"),
                       argument(operation, "offset"), argument(operation, "nbytes"), requested_);
    call.flags = flags;
    if (call.bytes > 0) {
        streams.add(call.streams, call.host ? nullptr : call.data, operation);
        if (!call.host) {
            placed_.push_back(
                {operation, reads ? call.data : nullptr, reads ? nullptr : call.data});
        }
    }
    files_.push_back({operation, std::move(call)});
}

// An empty array has no place.
void PreparedOperations::place(std::size_t operation, const Operand* to, const Operand* from,
                               const Streams& streams, CommonStreams& common) {
    if (to->bytes == 0 || from->bytes == 0) return;
    const bool on_gpu = to->gpu != kHost || from->gpu != kHost;
    common.add(streams, to->gpu != kHost ? to->data : (on_gpu ? from->data : nullptr), operation);
    if (on_gpu) placed_.push_back({operation, to->data, from->data});
}

// The bound of one list holds for all lists.
void PreparedOperations::count_pieces(const Submission& added) {
    pieces_ += added.list.count();
    if (pieces_ <= kMostPieces) return;
    raise(Failure::unsupported, {.what = "the operations so far have " + std::to_string(pieces_) +
                                         " pieces, more than " + std::to_string(kMostPieces),
                                 .remedy = "submit fewer at once"});
}

void PreparedOperations::open_files() {
    for (PreparedFile& one : files_) {
        const Direction direction = one.call.direction;
        const CallScope here(text(direction), one.operation);
        one.call.file = file_of(argument(one.operation, "path_or_fd"), direction);
        check_access(one.call.file, direction);
    }
}

void PreparedOperations::finish_long_copies(const Context& context, bool may_copy) {
    for (const std::size_t i : long_copies_) {
        PreparedCopy& one = copies_[i];
        const CallScope here("copy", one.operation);
        const nb::object to = argument(one.operation, "dst");
        const nb::object from = argument(one.operation, "src");
        const Pair pair(context, to, from, requested_, "copy", one.submission.kept);
        if (may_copy && copied_by_torch(pair, to, from, requested_, true)) {
            moved_ += pair.to.bytes;
        } else {
            set_memory(pair, one.submission);  // raises, unless the arrays have changed
        }
    }
}

void PreparedOperations::note_writes() const {
    const auto note = [&](std::size_t operation) {
        const nb::object written = argument(operation, "dst");
        if (is_torch_tensor(written)) note_torch_write(written);
    };
    for (const PreparedCopy& one : copies_) {
        if (one.submission.bytes > 0) note(one.operation);
    }
    for (const PreparedFile& one : files_) {
        if (one.call.direction == Direction::read) note(one.operation);
    }
}

std::vector<waywiser_operation> PreparedOperations::described() const {
    std::vector<waywiser_operation> all;
    all.reserve(pieces_ + copies_.size() + files_.size());
    for (const PreparedCopy& one : copies_) describe(one.submission, all);
    for (const PreparedFile& one : files_) describe(one.call, all);
    return all;
}

void PreparedOperations::name_invalid() const {
    OperationMemories all;
    for (const PreparedCopy& one : copies_) {
        const CallScope here("copy_blocks", one.operation);
        if (one.submission.blocks.count() > 0) check_indexes(one.submission.blocks);
        for_each_piece(one.submission, [&](void* to, const void* from, std::size_t bytes) {
            add_memory(all, to, bytes, true, one.operation);
            add_memory(all, from, bytes, false, one.operation);
        });
    }
    for (const PreparedFile& one : files_) {
        const bool reads = one.call.direction == Direction::read;
        add_memory(all, one.call.data, one.call.bytes, reads, one.operation);
    }
    check_apart(std::move(all));
}

Streams PreparedOperations::streams_now() const {
    CommonStreams streams(true);
    for (const Placed& one : placed_) {
        const CallScope here("TransferPlan.submit", one.operation);
        Operand to;
        Operand from;
        Held held;
        const auto read = [&](const char* name, Role role, const void* before, Operand& operand) {
            read_operand(argument(one.operation, name), role, std::nullopt, operand, held);
            if (operand.data == before) return;
            raise(Failure::invalid_transfer,
                  {.what = "the memory of the " + std::string(text(role)) +
                           " is not what it was when the plan was made",
                   .remedy = "make another plan"});
        };
        if (one.to != nullptr) read("dst", Role::destination, one.to, to);
        if (one.from != nullptr) read("src", Role::source, one.from, from);
        const Operand& on_gpu = to.gpu != kHost ? to : from;
        streams.add(choose_streams(std::nullopt, to, from), on_gpu.data, one.operation);
    }
    return placed_.empty() ? streams_ : streams.all();
}

std::size_t PreparedOperations::bytes() const {
    std::size_t all = 0;
    for (const PreparedCopy& one : copies_) all += one.submission.bytes;
    for (const PreparedFile& one : files_) all += one.call.bytes;
    return all;
}

std::string PreparedOperations::file_call() const {
    if (files_.size() != 1) return {};
    const PreparedFile& one = files_.front();
    return operation_text(one.operation) + ": " + one.call.file.call();
}

Held PreparedOperations::take_held() {
    Held all;
    const auto take = [&](HeldOperands& kept) {
        Held own = std::move(kept).all();
        std::ranges::move(own, std::back_inserter(all));
    };
    for (PreparedCopy& one : copies_) take(one.submission.kept);
    for (PreparedFile& one : files_) take(one.call.kept);
    return all;
}

std::vector<File> PreparedOperations::take_files() {
    std::vector<File> all;
    all.reserve(files_.size());
    for (PreparedFile& one : files_) all.push_back(std::move(one.call.file));
    return all;
}

Handle submit_operations(const Context& context, nb::handle operations, nb::handle stream) {
    prune();
    context->check_process();
    PreparedOperations prepared(context, operations, stream_of(stream), true);
    prepared.open_files();
    prepared.finish_long_copies(context, true);
    prepared.note_writes();
    const std::vector<waywiser_operation> described = prepared.described();
    StartedTransfer started{.bytes = prepared.bytes() + prepared.moved(),
                            .moved_before = prepared.moved(),
                            .streams = prepared.streams(),
                            .file_call = prepared.file_call()};
    if (!described.empty()) {
        const waywiser_status made = use(*context, [&](waywiser_context* c) {
            bool captured = false;  // then the library rejects it
            const waywiser_status status = order_before(c, started.streams, captured);
            if (status != WAYWISER_OK) return status;
            return waywiser_submit(c, described.data(), described.size(), started.streams.carrier,
                                   0, &started.transfer);
        });
        if (made == WAYWISER_INVALID) prepared.name_invalid();
        started.held = prepared.take_held();
        keep_if_in_use(made, started.held);
        check_use(made);
    }
    started.files = prepared.take_files();
    auto pending = std::make_shared<PendingTransfer>(std::move(started));
    keep(pending);
    return pending;
}

}  // namespace waywiser::python
