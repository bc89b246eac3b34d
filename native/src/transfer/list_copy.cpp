#include "transfer/list_copy.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transfer/byte_text.hpp"
#include "transfer/copy.hpp"
#include "transfer/describe.hpp"
#include "transfer/direct_list.hpp"
#include "transfer/ordering.hpp"
#include "transfer/profiler.hpp"
#include "transfer/staged_list.hpp"

namespace waywiser::transfer {
namespace {

// Fewer pieces, of fewer bytes, are copied by runtime calls, which take less time than staging.
constexpr std::size_t kFewPieces = 16;
constexpr std::size_t kFewBytes = std::size_t{4} << 20;

bool holds(const Extent& known, const std::byte* data, std::size_t bytes) {
    return data >= known.data && data + bytes <= known.data + known.bytes;
}

// Finds out the memory of the pieces of one side: each allocation and registration is queried once
// as long as consecutive pieces are in it.
class Finder {
public:
    explicit Finder(const Extent& all) {
        if (all.bytes == 0) return;
        side_ = side_of(const_cast<std::byte*>(all.data), all.bytes);
        if (side_.uniform) known_ = all;
    }

    const Side& side(const std::byte* data, std::size_t bytes) {
        if (known_.bytes != 0 && holds(known_, data, bytes)) return side_;
        side_ = side_of(const_cast<std::byte*>(data), bytes);
        known_ = {};
        if (side_.uniform && (side_.end.kind == Endpoint::Kind::device || side_.end.pinned)) {
            const gpu::PointerInfo info = gpu::pointer_info(data);
            if (info.start != nullptr) known_ = {info.start, info.bytes};
        }
        return side_;
    }

    // Whether an allocation or a registration begins at the address that side() was asked for.
    [[nodiscard]] bool begins(const std::byte* data) const {
        return known_.bytes != 0 && data == known_.data;
    }

    // Called before side(): whether all pieces are at one place, and which.
    [[nodiscard]] bool knows_all() const { return known_.bytes != 0; }
    [[nodiscard]] const Side& all() const { return side_; }

private:
    Side side_;
    Extent known_;
};

bool same_kind(const Side& a, const Side& b) {
    return a.end.kind == b.end.kind && a.end.gpu == b.end.gpu && a.end.pinned == b.end.pinned &&
           a.managed == b.managed && a.uniform == b.uniform;
}

}  // namespace

// Groups pieces with the same kinds of sides, in the order of their first pieces.
std::vector<PieceGroup> grouped(CopyList list) {
    std::vector<PieceGroup> groups;
    Finder to(list.to);
    Finder from(list.from);
    if (to.knows_all() && from.knows_all()) {
        groups.push_back({.to = to.all(), .from = from.all(), .list = std::move(list)});
        return groups;
    }
    list.check();
    list.make_pieces();
    std::size_t last = 0;
    for (const Piece& piece : list.pieces) {
        const Side& out = to.side(piece.to, piece.bytes);
        const Side& in = from.side(piece.from, piece.bytes);
        const auto is_of = [&](const PieceGroup& group) {
            return same_kind(group.to, out) && same_kind(group.from, in);
        };
        if (groups.empty() || !is_of(groups[last])) {
            last = static_cast<std::size_t>(std::ranges::find_if(groups, is_of) - groups.begin());
            if (last == groups.size()) groups.push_back({.to = out, .from = in, .list = {}});
        }
        Piece& mine = groups[last].list.pieces.emplace_back(piece);
        mine.to_begins = to.begins(piece.to);
        mine.from_begins = from.begins(piece.from);
    }
    return groups;
}

namespace {

bool reached(const Side& side) {
    return side.end.kind == Endpoint::Kind::device || side.end.pinned;
}

GroupMethod method_of(Engine& engine, const PieceGroup& group) {
    for (const Side* side : {&group.to, &group.from}) {
        if (side->managed || !side->uniform) return GroupMethod::single;
    }
    const int to = group.to.end.gpu;
    const int from = group.from.end.gpu;
    if (to >= 0 && from >= 0) {
        return to == from || engine.are_peers(to, from) ? GroupMethod::direct : GroupMethod::staged;
    }
    if ((to >= 0 || from >= 0) && reached(group.to) && reached(group.from))
        return GroupMethod::direct;
    return GroupMethod::staged;
}

bool is_with_host(const PieceGroup& group) {
    return group.to.end.gpu < 0 || group.from.end.gpu < 0;
}

int operand_of(const PieceGroup& group) {
    return group.to.end.gpu >= 0 ? group.to.end.gpu : group.from.end.gpu;
}

// `outlives`: the job goes on after the call, whose caller may change the indexes then.
std::shared_ptr<Job> job_of(Engine& engine, PieceGroup& group, bool outlives) {
    const std::size_t slot_bytes = list_slot_bytes(group.list.bytes());
    auto job = std::make_shared<StagedList>(engine, group.to.end, group.from.end,
                                            std::move(group.list), slot_bytes);
    if (outlives) job->keep_indexes();
    return job;
}

bool is_small(const PieceGroup& group) {
    return group.list.count() < kFewPieces && group.list.bytes() < kFewBytes;
}

// Whether a group that no GPU can move directly is not staged. `async`: the caller would wait for
// copies of the runtime.
bool is_copied_singly(const Engine& engine, const PieceGroup& group, GroupMethod method,
                      bool async) {
    return method == GroupMethod::single || engine.options().plain || (!async && is_small(group));
}

// The pieces of a list that are copied one by one; neighbours are joined.
std::vector<Piece> single_pieces(PieceGroup& group) {
    group.list.make_pieces();
    return merged(group.list.pieces);
}

// Queries the address of every registration: on a few systems some differ for kernels.
bool same_addresses(const PieceGroup& group, int gpu) {
    const bool to_host = group.to.end.gpu < 0;
    // There are blocks only if one registration covers each array (see grouped()).
    const Extent& all = to_host ? group.list.to : group.list.from;
    if (group.list.block != 0) return has_same_address(const_cast<std::byte*>(all.data), gpu);
    Extent known;
    for (const Piece& piece : group.list.pieces) {
        std::byte* const host = to_host ? piece.to : const_cast<std::byte*>(piece.from);
        if (known.bytes != 0 && holds(known, host, piece.bytes)) continue;
        const gpu::PointerInfo info = gpu::pointer_info(host);
        known = {info.start, info.start == nullptr ? 0 : info.bytes};
        if (!has_same_address(host, gpu)) return false;
    }
    return true;
}

// The first GPU with pieces; -1 if all are in host memory.
int gpu_of(const std::vector<PieceGroup>& groups) {
    for (const PieceGroup& group : groups) {
        if (operand_of(group) >= 0) return operand_of(group);
    }
    return -1;
}

// If no GPU is current, a default stream is that of the first GPU with pieces, for all pieces.
CallerStream stream_of(const std::vector<PieceGroup>& groups, const CallerStream& stream) {
    return with_its_gpu(stream, gpu_of(groups));
}

// Moves the groups of a list, once.
class GroupMover {
public:
    GroupMover(Engine& engine, std::vector<PieceGroup>& groups, const CallerStream& stream)
        : engine_(engine), groups_(groups), stream_(stream) {}

    // With the calling thread. Returns what is left of it at the deadline.
    std::optional<Completion> run(const Deadline& deadline) {
        try {
            // A call of the runtime with pageable memory would wait for lists before it.
            for (const bool singly : {true, false}) {
                for (PieceGroup& group : groups_) {
                    if (is_run_singly(group) != singly) continue;
                    if (is_late_) {
                        start_group(group);
                    } else {
                        run_group(group, deadline);
                    }
                }
            }
            if (!is_late_) return std::nullopt;
            add_mark();
        } catch (const std::exception&) {
            rethrow_when_unused();
        }
        return std::move(started_);
    }

    // Returns at once. Jobs start after the plain copies of other groups.
    Completion start() {
        for (PieceGroup& group : groups_) {
            if (method_of(engine_, group) != GroupMethod::direct) group.list.check();
        }
        try {
            for (const bool of_job : {false, true}) {
                for (PieceGroup& group : groups_) {
                    if (is_of_job(group) == of_job) start_group(group);
                }
            }
            if (!std::ranges::all_of(groups_, [&](const auto& one) { return is_of_job(one); })) {
                add_mark();
            }
        } catch (const std::exception&) {
            rethrow_when_unused();
        }
        return std::move(started_);
    }

private:
    [[nodiscard]] bool is_of_job(const PieceGroup& group) const {
        return method_of(engine_, group) == GroupMethod::staged && !engine_.options().plain;
    }

    [[nodiscard]] bool is_run_singly(const PieceGroup& group) const {
        const GroupMethod method = method_of(engine_, group);
        return method != GroupMethod::direct && is_copied_singly(engine_, group, method, false);
    }

    // To be called while an exception is handled: waits until nothing of the list uses the caller's
    // memory any more, and throws the exception again; MemoryInUse if the GPU does not answer.
    [[noreturn]] void rethrow_when_unused() {
        try {
            rethrow_when_ended(started_);
        } catch (const std::exception&) {
            // What has failed itself uses no memory any more, but what came before it may.
            if (started_.bytes() == 0 || gpu_of(groups_) < 0) throw;
            rethrow_when_settled(engine_, stream_);
        }
    }

    // An event after what is in the caller's stream.
    void add_mark() {
        if (gpu_of(groups_) < 0) return;
        if (auto marked = mark(engine_, stream_)) started_.add(std::move(*marked));
    }

    // Moves what a GPU can move, in the stream, and returns nullopt; else the order of the group in
    // the stream, after checks.
    std::optional<Ordering> moved_directly(PieceGroup& group) {
        Ordering order = ordering(engine_, stream_, operand_of(group));
        const GroupMethod method = method_of(engine_, group);
        if (order.capturing && method != GroupMethod::direct) reject_capture();
        if (method != GroupMethod::direct) {
            group.list.check();
            return order;
        }
        if (is_with_host(group)) {
            if (!order.capturing) group.same_addresses = same_addresses(group, operand_of(group));
        } else if (group.to.end.gpu != group.from.end.gpu) {
            engine_.enable_peers(group.to.end.gpu, group.from.end.gpu);
        }
        move_direct(engine_, group, order, stream_);
        return std::nullopt;
    }

    void run_group(PieceGroup& group, const Deadline& deadline) {
        const std::size_t bytes = group.list.bytes();
        const std::optional<Ordering> order = moved_directly(group);
        if (!order) return started_.add(Completion(bytes));
        if (!is_copied_singly(engine_, group, method_of(engine_, group), false)) {
            const auto job = job_of(engine_, group, deadline.is_limited());
            if (run_ordered(engine_, job, *order, deadline)) return started_.add(Completion(bytes));
            is_late_ = true;
            started_.add({engine_.shared_from_this(), job});
            return;
        }
        for (const Piece& piece : single_pieces(group)) {
            if (is_late_) {
                start_piece(piece);
                continue;
            }
            auto rest = run_copy(engine_, piece.to, piece.from, piece.bytes, stream_, deadline);
            is_late_ = rest.has_value();
            started_.add(rest ? std::move(*rest) : Completion(piece.bytes));
        }
    }

    void start_group(PieceGroup& group) {
        const std::size_t bytes = group.list.bytes();
        const std::optional<Ordering> order = moved_directly(group);
        if (!order) return started_.add(Completion(bytes));
        if (!is_of_job(group)) {
            for (const Piece& piece : single_pieces(group)) start_piece(piece);
            return;
        }
        auto job = job_of(engine_, group, true);
        engine_.start(job, after(*order));
        started_.add({engine_.shared_from_this(), std::move(job)});
    }

    void start_piece(const Piece& piece) {
        started_.add(start_copy(engine_, piece.to, piece.from, piece.bytes, stream_));
    }

    Engine& engine_;
    std::vector<PieceGroup>& groups_;
    const CallerStream stream_;
    Completion started_{0};  // what was moved, and what goes on after the call
    bool is_late_ = false;   // the deadline is over
};

// Of some groups CPUs and of others GPUs.
HostUse host_use(Engine& engine, const std::vector<PieceGroup>& groups) {
    HostUse all;
    for (const PieceGroup& group : groups) {
        if (group.to.end.gpu >= 0 && group.from.end.gpu >= 0) continue;
        const GroupMethod method = method_of(engine, group);
        all.cpus |= method != GroupMethod::direct;
        // Of single pieces the runtime moves some itself.
        all.gpus |= method != GroupMethod::staged;
    }
    return all;
}

// For a profiler.
std::string text_of_call(const CopyList& list) {
    return "waywiser copy " + text_of_list(list.bytes(), list.count());
}

// The calls for groups, whose caller keeps its state.
void run_groups(Engine& engine, std::vector<PieceGroup>& groups, const CallerStream& stream) {
    GroupMover(engine, groups, stream_of(groups, stream)).run({});
}

WaitResult run_groups_and_wait(const std::shared_ptr<Engine>& engine,
                               std::vector<PieceGroup>& groups, const CallerStream& stream,
                               const Deadline& deadline) {
    const int gpu = gpu_of(groups);
    const CallerStream used = stream_of(groups, stream);
    const Ordering order = ordering(*engine, used, gpu);
    const HostUse host = host_use(*engine, groups);
    if (host.cpus) {  // it waits for the stream first
        for (PieceGroup& group : groups) group.list.check();
    }
    const bool to_gpu =
        std::ranges::any_of(groups, [](const PieceGroup& one) { return one.to.end.gpu >= 0; });
    // When the stream has been waited for, CPUs need none.
    const bool on_host = gpu < 0 && !order.capturing;
    const CallerStream running = on_host ? CallerStream{.none = true} : used;
    return wait_for_host(
        {.bytes = bytes_of(groups),
         .order = order,
         .host = {.cpus = host.cpus, .gpus = host.gpus && !on_host},
         .to_gpu = to_gpu,
         .run = [&](const Deadline& end) { return GroupMover(*engine, groups, running).run(end); },
         .start = [&] { return GroupMover(*engine, groups, used).start(); }},
        deadline);
}

Completion start_groups(const std::shared_ptr<Engine>& engine, std::vector<PieceGroup>& groups,
                        const CallerStream& stream) {
    if (!engine->machine().gpus.empty() && !stream.none && gpu::capturing(stream.handle)) {
        throw NotSupported("the stream is being captured: record the copies with copy_batch()");
    }
    return GroupMover(*engine, groups, stream_of(groups, stream)).start();
}

}  // namespace

std::size_t bytes_of(const std::vector<PieceGroup>& groups) {
    std::size_t bytes = 0;
    for (const PieceGroup& group : groups) bytes += group.list.bytes();
    return bytes;
}

std::vector<GroupPlan> plan_list(Engine& engine, CopyList list) {
    std::vector<GroupPlan> plans;
    list.check();
    if (list.count() == 0) return plans;
    for (PieceGroup& group : grouped(std::move(list))) {
        GroupMethod method = method_of(engine, group);
        if (method == GroupMethod::direct && is_with_host(group)) {
            group.same_addresses = same_addresses(group, operand_of(group));
        }
        if (method != GroupMethod::direct && is_copied_singly(engine, group, method, false)) {
            method = GroupMethod::single;
        }
        plans.push_back({std::move(group), method});
    }
    return plans;
}

void copy_list(Engine& engine, CopyList list, const CallerStream& stream) {
    engine.check_process();
    if (list.count() == 0) return;
    const gpu::CallerState keep;
    const ProfilerRange profiled([&] { return text_of_call(list); });
    std::vector<PieceGroup> groups = grouped(std::move(list));
    run_groups(engine, groups, stream);
}

void copy_list(Engine& engine, std::vector<PieceGroup>& groups, const CallerStream& stream) {
    if (groups.empty()) return;
    const gpu::CallerState keep;
    run_groups(engine, groups, stream);
}

WaitResult copy_list_and_wait(const std::shared_ptr<Engine>& engine, CopyList list,
                              const CallerStream& stream, const Deadline& deadline) {
    engine->check_process();
    if (list.count() == 0) return {};
    const gpu::CallerState keep;
    const ProfilerRange profiled([&] { return text_of_call(list); });
    std::vector<PieceGroup> groups = grouped(std::move(list));
    return run_groups_and_wait(engine, groups, stream, deadline);
}

WaitResult copy_list_and_wait(const std::shared_ptr<Engine>& engine,
                              std::vector<PieceGroup>& groups, const CallerStream& stream,
                              const Deadline& deadline) {
    if (groups.empty()) return {};
    const gpu::CallerState keep;
    return run_groups_and_wait(engine, groups, stream, deadline);
}

Completion copy_list_async(const std::shared_ptr<Engine>& engine, CopyList list,
                           const CallerStream& stream) {
    engine->check_process();
    if (list.count() == 0) return Completion(0);
    const gpu::CallerState keep;
    const ProfilerRange profiled([&] { return text_of_call(list); });
    std::vector<PieceGroup> groups = grouped(std::move(list));
    return start_groups(engine, groups, stream);
}

Completion copy_list_async(const std::shared_ptr<Engine>& engine, std::vector<PieceGroup>& groups,
                           const CallerStream& stream) {
    if (groups.empty()) return Completion(0);
    const gpu::CallerState keep;
    return start_groups(engine, groups, stream);
}

}  // namespace waywiser::transfer
