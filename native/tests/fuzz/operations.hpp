// The table of operations: a new kind of call is one entry of one of its parts.
#pragma once

#include <cstddef>
#include <vector>

#include "fuzz/player.hpp"

namespace waywiser::fuzz {

struct OperationKind {
    const char* name;
    std::size_t weight;  // how often it is drawn, relative to the others
    void (*run)(Player& player, Draw& draw);
};

std::vector<OperationKind> copy_operations();
std::vector<OperationKind> list_operations();
std::vector<OperationKind> file_operations();
std::vector<OperationKind> handle_operations();
std::vector<OperationKind> other_operations();

// All of them.
const std::vector<OperationKind>& operation_kinds();
// One of those that --only has chosen.
void choose_operations(const Settings& settings);
const OperationKind& draw_operation(Draw& draw);

// --- what the parts share ---

inline constexpr std::array kHostKinds = {RegionKind::pageable, RegionKind::pinned,
                                          RegionKind::mixed};

// A part of a region, of `bytes` or less.
Span draw_span(Draw& draw, std::size_t region, std::size_t region_bytes, std::size_t bytes);
// Two parts that do not overlap, of equal size, of regions of memory.
Move draw_move(Player& player, Draw& draw);
// Limits of calls that wait: none, or a short one.
double draw_limit(Draw& draw);
std::string form_text(Form form, double limit);
// Whether the stream is to be busy during the call: only if it returns then.
bool draw_held(Player& player, Draw& draw, const Call& call);

}  // namespace waywiser::fuzz
