#include "fuzz/player.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "fake/context.hpp"
#include "fake/fake.hpp"
#include "fuzz/operations.hpp"

namespace waywiser::fuzz {
namespace {

constexpr std::uint64_t kSetUp = ~std::uint64_t{0};  // no operation has this number
constexpr std::size_t kShownOperations = 12;
constexpr std::size_t kFinishes = 5;
constexpr std::size_t kEndedBytes = 8 * kMiB;  // see waywiser_submit_and_wait()

bool lost() { return fake::Context::instance().lost(); }

// The ranges of one side of all moves: for each region the one around all of its parts.
void add_uses(std::vector<Operation::Use>& uses, const std::vector<Move>& moves, Span Move::* side,
              bool write) {
    const std::size_t first = uses.size();
    for (const Move& move : moves) {
        const Span& span = move.*side;
        if (span.bytes == 0) continue;
        const auto same =
            std::find_if(uses.begin() + static_cast<std::ptrdiff_t>(first), uses.end(),
                         [&](const Operation::Use& use) { return use.span.region == span.region; });
        if (same == uses.end()) {
            uses.push_back({.span = span, .write = write});
            continue;
        }
        const std::size_t end = std::max(same->span.end(), span.end());
        same->span.offset = std::min(same->span.offset, span.offset);
        same->span.bytes = end - same->span.offset;
    }
}

bool overlaps_any(const Span& span, const std::vector<Span>& others) {
    return std::ranges::any_of(others, [&](const Span& other) { return span.overlaps(other); });
}

}  // namespace

std::string status_name(waywiser_status status) {
    static constexpr std::array<const char*, 12> kStatusNames = {
        "OK", "INVALID", "UNSUPPORTED", "OUT_OF_MEMORY", "GPU",      "GPU_LOST",
        "IO", "TIMEOUT", "CANCELLED",   "FORKED",        "INTERNAL", "IN_USE"};
    return kStatusNames.at(static_cast<std::size_t>(status));
}

Player::Player(const Round& round, std::size_t number)
    : round_(round),
      number_(number),
      streams_(round.gpus),
      memory_(round.gpus, round.region_bytes, round.folder, Draw(round.seed, number, kSetUp)) {}

Player::~Player() = default;

void Player::fail(const std::string& what, const std::string& more) {
    std::string details = "thread " + std::to_string(number_) + ": " + more + "\n";
    const std::size_t shown = std::min(history_.size(), kShownOperations);
    details += "its last operations:\n";
    for (std::size_t i = history_.size() - shown; i < history_.size(); ++i) {
        details += "  " + history_[i] + "\n";
    }
    Report::fail(what, details);
}

void Player::play() {
    for (; made_ < round_.operations && !lost_; ++made_) {
        Draw draw(round_.seed, number_, made_);
        const OperationKind& kind = draw_operation(draw);
        kind.run(*this, draw);
    }
    for (std::size_t region = 0; region < memory_.regions(); ++region) touched_.insert(region);
    settle();
}

std::size_t Player::draw_stream(Draw& draw, const std::vector<Move>& moves) const {
    int gpu = static_cast<int>(draw.below(static_cast<std::size_t>(round_.gpus)));
    const bool any = draw.one_in(8);
    const auto kind = static_cast<StreamKind>(draw.below(kStreamKinds));
    for (const Move& move : moves) {
        if (any) break;
        for (const std::size_t region : {move.to.region, move.from.region}) {
            if (memory_.kind(region) == RegionKind::device) gpu = memory_.gpu(region);
        }
    }
    return streams_.id(gpu, kind);
}

void Player::draw_current_gpu(Draw& draw, std::size_t stream, bool& names_gpu) const {
    names_gpu = draw.one_in(2);
    const auto other = static_cast<int>(draw.below(static_cast<std::size_t>(round_.gpus)));
    fake::set_current_device(names_gpu ? other : streams_.gpu(stream));
}

// --- what is in use -----------------------------------------------------------------------

bool Player::conflicts(const Operation::Use& use, std::optional<std::size_t> stream,
                       const Operation* except) const {
    for (const Operation& earlier : operations_) {
        if (&earlier == except) continue;
        const bool follows = stream && (earlier.ordered & Streams::only(*stream)) != 0;
        const bool after_reads = stream && (earlier.source_read & Streams::only(*stream)) != 0;
        for (const Operation::Use& used : earlier.uses) {
            if (used.free || follows || (!used.write && !use.write)) continue;
            if (!used.write && after_reads) continue;
            if (used.span.overlaps(use.span)) return true;
        }
    }
    return false;
}

void Player::make_free(const Span& span, bool write) {
    if (conflicts({.span = span, .write = write}, std::nullopt, nullptr)) settle();
    touched_.insert(span.region);
}

std::vector<Operation*> Player::with_handle() {
    std::vector<Operation*> found;
    for (Operation& operation : operations_) {
        if (operation.form == Form::handle && operation.transfer != nullptr) {
            found.push_back(&operation);
        }
    }
    return found;
}

void Player::order_after(Operation& operation, std::size_t stream) {
    operation.ordered |= streams_.after(stream);
    for (const std::size_t before : operation.marks) {
        operations_[before].ordered |= streams_.after(stream);
    }
}

// --- calls ---------------------------------------------------------------------------------

Operation Player::make_operation(const Call& call, Draw& draw) {
    Operation operation;
    operation.number = made_;
    operation.form = call.form;
    if (!call.invalid) operation.moves = call.moves;
    add_uses(operation.uses, call.moves, &Move::to, true);
    add_uses(operation.uses, call.moves, &Move::from, false);
    if (call.file) {
        const auto of_file = std::ranges::find_if(
            operation.uses, [&](const auto& use) { return use.span.region == call.file->region; });
        const bool write = call.file_end || (of_file != operation.uses.end() && of_file->write);
        operation.uses.push_back({.span = *call.file, .write = write});
    }
    for (const Operation::Use& use : operation.uses) touched_.insert(use.span.region);
    for (const Move& move : call.moves) operation.bytes += move.to.bytes;
    operation.context = draw.below(round_.contexts->count());
    operation.finish = draw.below(kFinishes);
    operation.where =
        (call.ordered ? "the " + streams_.name(call.stream) : std::string("no stream")) +
        (call.held ? ", busy during the call" : "");
    operation.text = std::to_string(made_) + ": " + call.text + " in " + operation.where;
    return operation;
}

void Player::perform(const Call& call, Draw& draw) {
    if (lost_) return;
    Operation made = make_operation(call, draw);
    const auto stream = call.ordered ? std::optional(call.stream) : std::nullopt;
    const bool in_use = std::ranges::any_of(
        made.uses, [&](const auto& use) { return conflicts(use, stream, nullptr); });
    if (in_use) settle();
    if (lost_) return;
    for (const Operation::Use& use : made.uses) touched_.insert(use.span.region);
    operations_.push_back(std::move(made));
    call_library(call, operations_.back(), draw);
}

void Player::call_library(const Call& call, Operation& operation, Draw& draw) {
    const Contexts::Use context = round_.contexts->use(operation.context);
    if (call.in_context && context.get() == nullptr) {
        operations_.pop_back();
        return;
    }
    operation.releases = round_.contexts->releases(operation.context);
    if (call.in_context) {
        operation.text +=
            ", context " + std::to_string(operation.context) + " (" + context.kind() + ")";
    }
    history_.push_back(operation.text);
    if (call.file_end) memory_.expect_file_end(call.file->region, *call.file_end);
    if (call.expect) call.expect();
    if (!call.expect && !call.invalid)
        std::ranges::for_each(call.moves, [&](const Move& move) { memory_.expect(move); });
    bool names_gpu = false;
    draw_current_gpu(draw, call.stream, names_gpu);
    const int current = fake::current_device();
    waywiser_transfer** const left = call.form == Form::stream ? nullptr : &operation.transfer;
    std::size_t moved = operation.bytes;
    int ended = 0;
    const Arguments arguments{
        .context = context.get(),
        .stream = call.ordered ? streams_.handle(call.stream, names_gpu) : WAYWISER_NO_STREAM,
        .limit = call.limit,
        .transfer = left,
        .moved = &moved,
        .ended = &ended};
    {
        HeldStream held =
            holds_stream(call, context.kind()) ? streams_.hold(call.stream) : HeldStream();
        const double limit = call.form == Form::handle ? 0 : call.limit;
        operation.status = timed(operation.text, limit, [&] { return call.make(arguments); });
    }
    if (call.in_context && fake::current_device() != current) {
        fail("a call changed the thread's current GPU", operation.text);
    }
    note_order(call, operation);
    check_call(call, operation, moved, ended != 0);
    if (operation.status != WAYWISER_OK && call.form != Form::wait && !call.invalid) {
        settle();  // a part of it may be in the stream
        return;
    }
    if (draw.one_in(2)) overwrite_sources(operation, draw);
}

// Whether the stream is busy during the call. Not if the runtime may wait for the stream in a call
// of its own: in a plain context it copies pageable memory, and between host memories; and other
// threads may fill the queue of a legacy stream.
bool Player::holds_stream(const Call& call, const std::string& context_kind) const {
    const auto is_pageable = [&](const Span& span) {
        const RegionKind kind = memory_.kind(span.region);
        return kind == RegionKind::pageable || kind == RegionKind::mixed;
    };
    if (!call.held || round_.runtime_blocks) return false;
    if (streams_.kind(call.stream) == StreamKind::legacy && round_.threads > 1) return false;
    return context_kind != "plain" || std::ranges::none_of(call.moves, [&](const Move& move) {
               const bool on_host =
                   memory_.on_host(move.to.region) && memory_.on_host(move.from.region);
               return on_host || is_pageable(move.to) || is_pageable(move.from);
           });
}

waywiser_status Player::timed(const std::string& text, double limit,
                              const std::function<waywiser_status()>& make) {
    activity_.begins("thread " + std::to_string(number_) + ", " + text);
    const waywiser_status status = make();
    const double taken = activity_.seconds();
    activity_.ends();
    if (limit >= 0 && taken > limit + slack_seconds() + round_.hang_seconds) {
        fail("a call took longer than its limit",
             text + ": " + std::to_string(taken) + " s, limit " + std::to_string(limit) + " s");
    }
    return status;
}

bool Player::accept_status(const Operation& operation, const std::string& call,
                           waywiser_status status) {
    if (status == WAYWISER_OK) return true;
    if (status == WAYWISER_IN_USE) round_.in_use = true;
    bool may = (was_released(operation) || operation.cancelled) && status == WAYWISER_CANCELLED;
    if (round_.faulty) {
        may = may || status == WAYWISER_GPU || status == WAYWISER_GPU_LOST ||
              status == WAYWISER_OUT_OF_MEMORY || status == WAYWISER_UNSUPPORTED ||
              status == WAYWISER_IN_USE;
    }
    if (round_.hang_seconds > 0) may = may || status == WAYWISER_IN_USE;
    if (!may) {
        fail("status " + status_name(status) + " of " + call,
             operation.text + ": " + waywiser_last_error());
    }
    return false;
}

// Which memory is free now, and which streams order what follows.
void Player::note_order(const Call& call, Operation& operation) {
    const bool without_limit = call.form == Form::wait && call.limit < 0;
    const bool to_file = call.file && std::ranges::any_of(operation.uses, [&](const auto& use) {
                             return use.write && use.span.region == call.file->region;
                         });
    for (Operation::Use& use : operation.uses) {
        const RegionKind kind = memory_.kind(use.span.region);
        const bool of_host = memory_.on_host(use.span.region) || kind == RegionKind::file;
        const bool cpus = kind == RegionKind::pageable || kind == RegionKind::file;
        if (call.form == Form::stream) use.free = call.in_context && (cpus || to_file);
        if (without_limit) use.free = of_host || to_file;
        if (call.invalid) use.free = true;
    }
    if (!call.ordered || call.form == Form::handle || (call.form == Form::wait && !without_limit)) {
        return;
    }
    const StreamSet after = streams_.after(call.stream);
    operation.ordered = after;
    if (operation.bytes == 0 || call.invalid) return;
    for (Operation& earlier : operations_) {
        if ((earlier.ordered & Streams::only(call.stream)) != 0) earlier.ordered |= after;
    }
}

void Player::check_call(const Call& call, Operation& operation, std::size_t moved, bool ended) {
    if (call.invalid) {
        const bool invalid = operation.status == WAYWISER_INVALID ||
                             (round_.faulty && operation.status != WAYWISER_OK);
        if (!invalid) {
            fail("status " + status_name(operation.status) + " of an invalid call", operation.text);
        }
        if (operation.transfer != nullptr) fail("a failed call has a handle", operation.text);
        return;
    }
    operation.failed = !accept_status(operation, "the call", operation.status);
    if (operation.failed) {
        if (operation.transfer != nullptr) fail("a failed call has a handle", operation.text);
        return;
    }
    if (operation.transfer != nullptr) {
        if (call.form == Form::wait && call.limit < 0) {
            fail("a call without a limit left a handle", operation.text);
        }
        return;
    }
    if (call.form != Form::handle && moved != operation.bytes) {
        fail("wrong number of bytes", operation.text + ": " + std::to_string(moved) +
                                          " in place of " + std::to_string(operation.bytes));
    }
    if (call.form == Form::wait && !ended && operation.bytes < kEndedBytes && call.one_range) {
        fail("a small copy has not ended", operation.text);
    }
    if (call.form == Form::wait || call.form == Form::stream) {
        check_destinations(operation, !ended, "after the call");
    }
}

// `host_only`: the side of the host alone, if it is known to be free.
void Player::check_destinations(const Operation& operation, bool host_only,
                                const std::string& when) {
    for (const Move& move : operation.moves) {
        if (move.to.bytes == 0) continue;
        const RegionKind kind = memory_.kind(move.to.region);
        if (host_only) {
            const bool filled = kind == RegionKind::pageable || kind == RegionKind::file ||
                                (operation.form == Form::wait && memory_.on_host(move.to.region));
            if (!filled) continue;
        }
        if (kind == RegionKind::file && operations_.size() > 1) continue;  // others may write it
        if (const auto difference = memory_.difference(move.to)) {
            wrong_.push_back({operation.number, *difference, when});
            return;
        }
    }
}

// A source that is free may be written at once.
void Player::overwrite_sources(Operation& operation, Draw& draw) {
    if (operation.failed) return;
    for (const Operation::Use& use : operation.uses) {
        if (use.write || !use.free || !memory_.on_host(use.span.region)) continue;
        if (use.span.bytes == 0 || operation.moves.empty()) continue;
        if (conflicts({.span = use.span, .write = true}, std::nullopt, &operation)) continue;
        memory_.write(use.span, draw);
    }
}

void Player::query(const std::string& text, Draw& draw,
                   const std::function<waywiser_status(waywiser_context*)>& make) {
    Operation operation;
    operation.context = draw.below(round_.contexts->count());
    const Contexts::Use context = round_.contexts->use(operation.context);
    if (context.get() == nullptr) return;
    operation.releases = round_.contexts->releases(operation.context);
    operation.text = std::to_string(made_) + ": " + text;
    history_.push_back(operation.text);
    const waywiser_status status = timed(operation.text, 0, [&] { return make(context.get()); });
    accept_status(operation, text, status);
}

void Player::replace_context(Draw& draw) {
    if (round_.keeps_contexts) return;
    const std::size_t number = draw.below(round_.contexts->count());
    Operation operation;
    operation.context = number;
    operation.text = std::to_string(made_) + ": context " + std::to_string(number) +
                     " is released and made again";
    history_.push_back(operation.text);
    const waywiser_status status =
        timed(operation.text, -1, [&] { return round_.contexts->replace(number, draw); });
    operation.releases = round_.contexts->releases(number);
    accept_status(operation, "context_create", status);
}

// --- the end of operations -----------------------------------------------------------------

waywiser_status Player::result_in_steps(Operation& operation, std::size_t& moved) {
    for (;;) {
        const auto start = std::chrono::steady_clock::now();
        const waywiser_status status = waywiser_transfer_result(operation.transfer, 0.05, &moved);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (taken.count() > slack_seconds() + round_.hang_seconds) {
            fail("transfer_result took longer than its limit", operation.text);
        }
        if (status != WAYWISER_TIMEOUT) return status;
    }
}

void Player::wait_for_notification(Operation& operation) {
    for (std::uint64_t notified = 0; notified < operation.notifications;) {
        pollfd descriptor{.fd = operation.descriptor, .events = POLLIN, .revents = 0};
        if (::poll(&descriptor, 1, -1) != 1) continue;
        std::uint64_t count = 0;
        if (::read(operation.descriptor, &count, sizeof count) != sizeof count) continue;
        notified += count;
        if (notified > operation.notifications) {
            fail("a descriptor was notified too often", operation.text);
        }
    }
    if (operation.transfer != nullptr && !was_released(operation) &&
        waywiser_transfer_done(operation.transfer) != 1) {
        fail("transfer_done() is 0 after the notification", operation.text);
    }
}

// The work of a stream that was ordered after a transfer sees its bytes.
void Player::wait_in_stream(Operation& operation) {
    const int gpu = static_cast<int>(operation.number) % round_.gpus;
    const std::size_t stream = streams_.id(gpu, StreamKind::non_blocking);
    const waywiser_status status =
        waywiser_transfer_wait(operation.transfer, streams_.handle(stream, true), -1);
    if (!accept_status(operation, "transfer_wait", status)) {
        operation.failed = true;
        return;
    }
    streams_.wait(stream);
    if (!operation.failed && !overwritten_later(operation)) {
        check_destinations(operation, false, "after a wait in a stream");
    }
}

bool Player::overwritten_later(const Operation& operation) const {
    return std::ranges::any_of(operations_, [&](const Operation& later) {
        return later.number > operation.number &&
               std::ranges::any_of(later.uses, [&](const Operation::Use& use) {
                   return use.write && std::ranges::any_of(operation.moves, [&](const Move& move) {
                              return move.to.overlaps(use.span);
                          });
               });
    });
}

void Player::finish(Operation& operation) {
    activity_.begins("thread " + std::to_string(number_) + ", waits for " + operation.text);
    if (operation.transfer != nullptr) {
        if (operation.finish == 1 && !operation.failed) wait_in_stream(operation);
        if (operation.finish == 2) {
            while (waywiser_transfer_done(operation.transfer) == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            }
        }
        std::size_t moved = 0;
        const waywiser_status status =
            operation.finish == 3 ? waywiser_transfer_result(operation.transfer, -1, &moved)
                                  : result_in_steps(operation, moved);
        operation.status = status;
        operation.failed = !accept_status(operation, "transfer_result", status) || operation.failed;
        if (status == WAYWISER_OK && moved != operation.bytes) {
            fail("wrong number of bytes", operation.text + ": " + std::to_string(moved) +
                                              " in place of " + std::to_string(operation.bytes));
        }
        if (waywiser_transfer_done(operation.transfer) != 1) {
            fail("transfer_done() is 0 after its result", operation.text);
        }
        if (!operation.failed && !overwritten_later(operation)) {
            check_destinations(operation, false, "after its result");
        }
    } else if (operation.descriptor >= 0) {
        // The handle is released: how it ended is known only if nothing can fail.
        operation.failed = round_.faulty || round_.hang_seconds > 0 || was_released(operation) ||
                           operation.cancelled;
    }
    if (operation.descriptor >= 0) {
        wait_for_notification(operation);
        close(operation.descriptor);
    }
    waywiser_transfer_release(std::exchange(operation.transfer, nullptr));
    activity_.ends();
}

// Which operations have left bytes that are not known: those that failed, and those after them.
std::vector<bool> Player::uncertain() const {
    std::vector<Span> unknown;
    std::vector<bool> found;
    for (const Operation& operation : operations_) {
        bool is_unknown = operation.failed || lost();
        for (const Move& move : operation.moves) {
            is_unknown =
                is_unknown || overlaps_any(move.from, unknown) || overlaps_any(move.to, unknown);
        }
        if (is_unknown) {
            for (const Move& move : operation.moves) unknown.push_back(move.to);
        }
        found.push_back(is_unknown);
    }
    return found;
}

void Player::check_all(const std::vector<bool>& unknown) {
    const auto describe = [&](const Difference& difference) {
        return memory_.text(difference.where) + " is " + std::to_string(difference.has) +
               " in place of " + std::to_string(difference.expected);
    };
    for (const Wrong& wrong : wrong_) {
        for (std::size_t i = 0; i < operations_.size(); ++i) {
            if (operations_[i].number != wrong.operation || unknown[i]) continue;
            const bool late = !memory_.difference(wrong.difference.where);
            fail("wrong bytes " + wrong.when, describe(wrong.difference) +
                                                  (late ? " (and right now, later)" : "") + "\n" +
                                                  operations_[i].text);
        }
    }
    wrong_.clear();
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        if (!unknown[i]) continue;
        for (const Move& move : operations_[i].moves) memory_.accept(move.to);
    }
    for (const std::size_t region : touched_) {
        const auto difference = memory_.difference(region);
        if (!difference) continue;
        std::string who = describe(*difference) + "\nwritten by:";
        for (const Operation& operation : operations_) {
            for (const Move& move : operation.moves) {
                if (move.to.overlaps(difference->where)) who += "\n  " + operation.text;
            }
        }
        fail("wrong bytes when everything was done", who);
    }
}

void Player::settle() {
    const std::string text = "thread " + std::to_string(number_) + ", waits for all streams";
    for (Operation& operation : operations_) finish(operation);
    activity_.begins(text);
    streams_.wait_all();
    activity_.ends();
    const auto unknown = uncertain();
    check_all(unknown);
    const bool all_known = std::ranges::none_of(unknown, [](bool each) { return each; });
    for (const Operation& operation : operations_) note_outcome(operation);
    for (const std::size_t region : touched_) {
        outcomes_.push_back({.what = "bytes after operation " + std::to_string(made_),
                             .value = memory_.hash(region),
                             .certain = all_known && !round_.faulty});
    }
    operations_.clear();
    kept_.clear();
    touched_.clear();
    lost_ = lost_ || lost();
}

void Player::note_outcome(const Operation& operation) {
    const bool certain = !round_.faulty && round_.hang_seconds == 0 && !was_released(operation) &&
                         !operation.cancelled;
    outcomes_.push_back({.what = operation.text.substr(0, operation.text.find(", context")),
                         .status = operation.status,
                         .value = operation.bytes,
                         .certain = certain});
}

bool Player::was_released(const Operation& operation) const {
    return round_.contexts->releases(operation.context) != operation.releases;
}

}  // namespace waywiser::fuzz
