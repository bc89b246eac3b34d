#include "transfer/submit.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include "transfer/copy.hpp"
#include "transfer/list_copy.hpp"
#include "transfer/ordering.hpp"
#include "transfer/side.hpp"
#include "transfer/snapshot.hpp"

namespace waywiser::transfer {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};

// Of one operation, with the calling thread.
void run_one(const std::shared_ptr<Engine>& engine, Operation& operation,
             const CallerStream& stream, std::size_t& moved) {
    std::visit(
        Overloaded{
            [&](const RangeCopy& one) { copy(*engine, one.to, one.from, one.bytes, stream); },
            [&](CopyList& list) { copy_list(*engine, std::move(list), stream); },
            [&](GroupedList& list) { copy_list(*engine, list.groups, stream); },
            [&](const FileRead& one) { read(*engine, one.from, one.to, one.bytes, stream, moved); },
            [&](const FileWrite& one) {
                write(*engine, one.to, one.from, one.bytes, stream, moved, one.end);
            }},
        operation);
}

Completion start_one(const std::shared_ptr<Engine>& engine, Operation& operation,
                     const CallerStream& stream) {
    return std::visit(
        Overloaded{[&](const RangeCopy& one) {
                       return copy_async(engine, one.to, one.from, one.bytes, stream);
                   },
                   [&](CopyList& list) { return copy_list_async(engine, std::move(list), stream); },
                   [&](GroupedList& list) { return copy_list_async(engine, list.groups, stream); },
                   [&](const FileRead& one) {
                       return read_async(engine, one.from, one.to, one.bytes, stream);
                   },
                   [&](const FileWrite& one) {
                       return write_async(engine, one.to, one.from, one.bytes, stream, one.end);
                   }},
        operation);
}

WaitResult run_one_and_wait(const std::shared_ptr<Engine>& engine, Operation& operation,
                            const CallerStream& stream, const Deadline& deadline,
                            std::size_t& moved) {
    return std::visit(
        Overloaded{[&](const RangeCopy& one) {
                       return copy_and_wait(engine, one.to, one.from, one.bytes, stream, deadline);
                   },
                   [&](CopyList& list) {
                       return copy_list_and_wait(engine, std::move(list), stream, deadline);
                   },
                   [&](GroupedList& list) {
                       return copy_list_and_wait(engine, list.groups, stream, deadline);
                   },
                   [&](const FileRead& one) {
                       return read_and_wait(engine, one.from, one.to, one.bytes, stream, deadline,
                                            moved);
                   },
                   [&](const FileWrite& one) {
                       return write_and_wait(engine, one.to, one.from, one.bytes, stream, deadline,
                                             moved, one.end);
                   }},
        operation);
}

Completion start_all(const std::shared_ptr<Engine>& engine, std::span<Operation> operations,
                     const CallerStream& stream) {
    Completion all(0);
    try {
        for (Operation& one : operations) all.add(start_one(engine, one, stream));
    } catch (const std::exception&) {
        rethrow_when_ended(all);
    }
    return all;
}

void run_all(const std::shared_ptr<Engine>& engine, std::span<Operation> operations,
             const CallerStream& stream, std::size_t& moved) {
    try {
        for (Operation& one : operations) {
            std::size_t of_one = 0;
            try {
                run_one(engine, one, stream, of_one);
            } catch (...) {
                moved += of_one;
                throw;
            }
            moved += of_one;
        }
    } catch (const std::exception&) {
        if (engine->forked()) throw;
        rethrow_when_settled(*engine, stream);  // those before it may be in the stream
    }
}

Completion start_snapshot(const std::shared_ptr<Engine>& engine, std::span<Operation> operations,
                          const CallerStream& stream) {
    if (stream.none) throw InvalidCopy("a snapshot follows a stream: pass one, or NULL");
    CopyList all;
    for (Operation& operation : operations) {
        CopyList* const list = std::get_if<CopyList>(&operation);
        if (list == nullptr) {
            throw InvalidCopy(
                "a snapshot copies ranges and blocks of a GPU's memory: submit other operations "
                "without that flag");
        }
        if (operations.size() == 1) return snapshot(engine, std::move(*list), stream);
        list->check();
        list->make_pieces();
        std::ranges::move(list->pieces, std::back_inserter(all.pieces));
    }
    return snapshot(engine, std::move(all), stream);
}

// The memory of one side of an operation, from its lowest to its highest byte.
struct Hull {
    std::uintptr_t begin = 0, end = 0;
    bool is_written = false;
};

void add_hull(std::vector<Hull>& hulls, const void* data, std::size_t bytes, bool is_written) {
    if (bytes == 0 || data == nullptr) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    hulls.push_back({begin, begin + bytes, is_written});
}

void add_hulls(std::vector<Hull>& hulls, const CopyList& list) {
    if (list.block != 0) {
        add_hull(hulls, list.to.data, list.to.bytes, true);
        add_hull(hulls, list.from.data, list.from.bytes, false);
        return;
    }
    for (const Piece& piece : list.pieces) {
        add_hull(hulls, piece.to, piece.bytes, true);
        add_hull(hulls, piece.from, piece.bytes, false);
    }
}

std::vector<Hull> hulls_of(std::span<const Operation> operations) {
    std::vector<Hull> hulls;
    for (const Operation& operation : operations) {
        std::visit(
            Overloaded{[&](const RangeCopy& one) {
                           add_hull(hulls, one.to, one.bytes, true);
                           add_hull(hulls, one.from, one.bytes, false);
                       },
                       [&](const CopyList& list) { add_hulls(hulls, list); },
                       [&](const GroupedList& list) {
                           for (const PieceGroup& one : list.groups) add_hulls(hulls, one.list);
                       },
                       [&](const FileRead& one) { add_hull(hulls, one.to, one.bytes, true); },
                       [&](const FileWrite& one) { add_hull(hulls, one.from, one.bytes, false); }},
            operation);
    }
    return hulls;
}

// Whether memory that is written may be that of another hull.
bool may_meet(std::vector<Hull> hulls) {
    std::ranges::sort(hulls, {}, &Hull::begin);
    std::uintptr_t end = 0;
    std::uintptr_t written_end = 0;
    for (const Hull& one : hulls) {
        if (one.begin < (one.is_written ? end : written_end)) return true;
        end = std::max(end, one.end);
        if (one.is_written) written_end = std::max(written_end, one.end);
    }
    return false;
}

// The exact memory of all operations. A copy of each block list is made into pieces.
std::vector<Hull> pieces_of(std::span<const Operation> operations) {
    std::vector<Hull> pieces;
    const auto add_list = [&](CopyList list) {
        list.check();
        list.make_pieces();
        add_hulls(pieces, list);
    };
    for (const Operation& operation : operations) {
        if (const auto* list = std::get_if<CopyList>(&operation)) {
            add_list(*list);
        } else if (const auto* grouped = std::get_if<GroupedList>(&operation)) {
            for (const PieceGroup& group : grouped->groups) add_list(group.list);
        } else {
            std::ranges::move(hulls_of({&operation, 1}), std::back_inserter(pieces));
        }
    }
    return pieces;
}

}  // namespace

std::size_t bytes_of(std::span<const Operation> operations) {
    std::size_t bytes = 0;
    for (const Operation& operation : operations) {
        bytes +=
            std::visit(Overloaded{[](const CopyList& list) { return list.bytes(); },
                                  [](const GroupedList& list) { return bytes_of(list.groups); },
                                  [](const auto& one) { return one.bytes; }},
                       operation);
    }
    return bytes;
}

void check_apart(std::span<const Operation> operations) {
    if (operations.size() < 2 || !may_meet(hulls_of(operations))) return;
    // Blocks of several operations may take turns in one array.
    if (!may_meet(pieces_of(operations))) return;
    throw InvalidCopy(
        "an operation writes memory that another one of the same transfer reads or writes: submit "
        "them one after the other");
}

Submitted submit(const std::shared_ptr<Engine>& engine, std::span<Operation> operations,
                 const CallerStream& stream, SubmitMode mode, const Deadline& deadline,
                 std::size_t& moved) {
    engine->check_process();
    moved = 0;
    if (operations.empty()) return {.left = std::nullopt, .ended = true};
    switch (mode) {
        case SubmitMode::in_stream:
            if (operations.size() == 1) {
                run_one(engine, operations.front(), stream, moved);
            } else {
                run_all(engine, operations, stream, moved);
            }
            return {};
        case SubmitMode::at_once: {
            if (operations.size() == 1) return {start_one(engine, operations.front(), stream)};
            return {start_all(engine, operations, stream)};
        }
        case SubmitMode::snapshot: return {start_snapshot(engine, operations, stream)};
        case SubmitMode::host_free: break;
    }
    if (operations.size() == 1) {
        WaitResult one = run_one_and_wait(engine, operations.front(), stream, deadline, moved);
        return {.left = std::move(one.left), .ended = one.ended};
    }
    WaitResult all = wait_for_end(start_all(engine, operations, stream), deadline);
    return {.left = std::move(all.left), .ended = all.ended};
}

PreparedOperations::PreparedOperations(std::shared_ptr<Engine> engine,
                                       std::vector<Operation> operations)
    : engine_(std::move(engine)), operations_(std::move(operations)) {
    engine_->check_process();
    const gpu::CallerState keep;
    check_apart(operations_);
    for (Operation& operation : operations_) {
        CopyList* const list = std::get_if<CopyList>(&operation);
        if (list == nullptr) continue;
        for (Blocks* blocks : {&list->to_blocks, &list->from_blocks}) {
            blocks->index = indexes_.emplace_back(blocks->index.begin(), blocks->index.end());
        }
        list->check();
        list->marks = {};
        operation =
            GroupedList{list->count() == 0 ? std::vector<PieceGroup>() : grouped(std::move(*list))};
    }
}

Submitted PreparedOperations::submit(const CallerStream& stream, SubmitMode mode,
                                     const Deadline& deadline, std::size_t& moved) const {
    // A call changes what it moves.
    std::vector<Operation> operations = operations_;
    return transfer::submit(engine_, operations, stream, mode, deadline, moved);
}

}  // namespace waywiser::transfer
