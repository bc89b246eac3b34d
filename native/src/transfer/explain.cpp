#include "transfer/explain.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "gpu/gpu.hpp"
#include "transfer/byte_text.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/direct_list.hpp"
#include "transfer/list_copy.hpp"
#include "transfer/policy.hpp"
#include "transfer/side.hpp"
#include "transfer/staged_list.hpp"

namespace waywiser::transfer {
namespace {

std::string text_of_seconds(double seconds) {
    const bool is_short = seconds < 1e-3;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g %s", seconds * (is_short ? 1e6 : 1e3),
                  is_short ? "us" : "ms");
    return text.data();
}

// What the policy expects of a method.
std::string expectation(const PolicyDecision& made, const std::string& file) {
    const PolicyRow& row = *made.row;
    std::string text = "; policy " + file + ": " + row.executor + " took ";
    text += text_of_seconds(row.seconds) + " (95 %: " + text_of_seconds(row.low) + " to " +
            text_of_seconds(row.high) + ") for ";
    if (row.count > 1) text += std::to_string(row.pieces) + " pieces of ";
    text += text_of_bytes(row.bytes);
    return row.host_contiguous ? text + " that are contiguous in host memory" : text;
}

std::string text_of_place(const Side& side) {
    if (side.end.gpu >= 0) return "gpu:" + std::to_string(side.end.gpu);
    if (side.managed) return "managed memory";
    return side.end.pinned ? "pinned memory" : "pageable memory";
}

std::string text_of_copies(std::size_t copies, std::size_t pieces) {
    if (copies == pieces) return "one copy for each piece";
    if (copies == 1) return "one copy (the pieces are neighbours)";
    return std::to_string(copies) + " copies (neighbours are joined)";
}

std::string text_of_blocks(unsigned blocks) {
    return blocks == 1 ? "one multiprocessor"
                       : "up to " + std::to_string(blocks) + " multiprocessors";
}

std::string text_of_pipeline(const ListChoice& choice, bool to_host, const std::string& gpu) {
    const std::string chunks = "chunks of up to " + text_of_bytes(choice.chunk);
    const std::string kernels = " by " + text_of_blocks(choice.blocks);
    return (to_host
                ? "gathered in staging memory of " + gpu + kernels + ", then copied in " + chunks
                : "copied in " + chunks + " to staging memory of " + gpu + " and scattered there" +
                      kernels) +
           (choice.policy == nullptr ? ": the pieces are contiguous in host memory" : "");
}

std::string text_of_move(const DirectMove& move, const PieceGroup& group, bool plain) {
    const bool to_host = group.to.end.gpu < 0;
    const std::string gpu = text_of_place(to_host ? group.from : group.to);
    switch (move.choice.method) {
        case ListMethod::kernel:
            return "moved by " + text_of_blocks(move.choice.blocks) + " of " + gpu;
        case ListMethod::pipeline: return text_of_pipeline(move.choice, to_host, gpu);
        case ListMethod::batch:
            if (move.calls == 1) return "one call of the runtime";
            return std::to_string(move.calls) + " calls of the runtime, of up to " +
                   std::to_string(kMostInBatch) + " copies each";
        case ListMethod::copies: break;
    }
    return text_of_copies(move.calls, move.pieces) + (plain ? ": plain copies were asked for" : "");
}

const char* why_single(const Engine& engine, const PieceGroup& group) {
    if (group.to.managed || group.from.managed) return "the runtime moves managed memory";
    if (!group.to.uniform || !group.from.uniform) return "a side is in several registrations";
    return engine.options().plain ? "plain copies were asked for" : "too small for staging";
}

std::string text_of_staging(const Engine& engine, const PieceGroup& group, std::size_t bytes) {
    const bool to_gpu = group.to.end.gpu >= 0;
    const bool from_gpu = group.from.end.gpu >= 0;
    const std::string slots = "pinned slots of " + text_of_bytes(list_slot_bytes(bytes));
    const std::string threads =
        "; up to " + std::to_string(std::min(kListThreads, engine.options().threads)) + " threads";
    if (to_gpu && from_gpu)
        return "staged through " + slots + ": the GPUs have no peer access" + threads;
    if (!to_gpu && !from_gpu) return "threads copy between host memories" + threads;
    return "threads copy through " + slots + ": the memory is pageable" + threads;
}

// What is moved by one method.
std::string text_of_pieces(const PieceGroup& group, std::size_t count, std::size_t least,
                           std::size_t most) {
    return "list of " + std::to_string(count) + (count == 1 ? " piece" : " pieces") + " of " +
           text_of_bytes(least) + (least == most ? "" : " to " + text_of_bytes(most)) + ", " +
           text_of_place(group.from) + " to " + text_of_place(group.to) + "; ";
}

void add_lines(Engine& engine, const GroupPlan& plan, std::string& lines) {
    const PieceGroup& group = plan.group;
    const auto add = [&](const std::string& line) { lines += (lines.empty() ? "" : "\n") + line; };
    if (plan.method == GroupMethod::direct) {
        for (const DirectMove& move : plan_direct(engine, group)) {
            const PolicyDecision* const policy = move.choice.policy;
            add(text_of_pieces(group, move.pieces, move.least, move.most) +
                text_of_move(move, group, engine.options().plain) +
                (policy == nullptr
                     ? ""
                     : ": by the policy" + expectation(*policy, engine.policy_file())));
        }
        return;
    }
    std::vector<Piece> buffer;
    const ListPart all(group.list, 0, group.list.count(), buffer);
    const auto [least, most] = all.piece_bytes();
    add(text_of_pieces(group, all.count(), least, most) +
        (plan.method == GroupMethod::single
             ? text_of_copies(merged_count(all.pieces()), all.count()) + ": " +
                   why_single(engine, group)
             : text_of_staging(engine, group, group.list.bytes())));
}

}  // namespace

Choice choice_of(Engine& engine, const void* to, const void* from, std::size_t bytes) {
    engine.check_process();
    const gpu::CallerState keep;
    check_copy(to, from, bytes);
    return choose(engine, side_of(const_cast<void*>(to), bytes),
                  side_of(const_cast<void*>(from), bytes), bytes);
}

std::string explain(Engine& engine, const void* to, const void* from, std::size_t bytes) {
    engine.check_process();
    if (bytes == 0) return "nothing to copy";
    const Choice choice = choice_of(engine, to, from, bytes);
    const std::string expected =
        choice.policy == nullptr ? "" : expectation(*choice.policy, engine.policy_file());
    if (choice.method == Choice::Method::plain) return "plain copy: " + choice.why + expected;
    const CopyShape& shape = choice.shape;
    const std::size_t most = engine.options().threads;
    const std::size_t threads = shape.threads == 0 ? most : std::min(shape.threads, most);
    std::string text = "chunked copy: " + choice.why + "; chunks of " +
                       std::to_string(shape.chunk >> 10) + " KiB, up to " +
                       std::to_string(threads) + " threads";
    if (!shape.relays.empty()) {
        text += ", relays";
        for (const int relay : shape.relays) text += " gpu:" + std::to_string(relay);
    }
    return text + expected;
}

std::string explain(Engine& engine, CopyList list) {
    engine.check_process();
    const gpu::CallerState keep;
    std::string lines;
    for (const GroupPlan& plan : plan_list(engine, std::move(list))) {
        add_lines(engine, plan, lines);
    }
    return lines.empty() ? "nothing to copy" : lines;
}

}  // namespace waywiser::transfer
