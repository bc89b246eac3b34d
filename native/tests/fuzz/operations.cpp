#include "fuzz/operations.hpp"

#include <algorithm>

namespace waywiser::fuzz {
namespace {

std::vector<const OperationKind*>& chosen() {
    static std::vector<const OperationKind*> kinds;
    return kinds;
}

}  // namespace

const std::vector<OperationKind>& operation_kinds() {
    static const std::vector<OperationKind> all = [] {
        std::vector<OperationKind> joined;
        for (const auto& part : {copy_operations(), list_operations(), file_operations(),
                                 handle_operations(), other_operations()}) {
            joined.insert(joined.end(), part.begin(), part.end());
        }
        return joined;
    }();
    return all;
}

void choose_operations(const Settings& settings) {
    chosen().clear();
    for (const OperationKind& kind : operation_kinds()) {
        if (!settings.chooses(kind.name)) continue;
        chosen().insert(chosen().end(), kind.weight, &kind);
    }
}

const OperationKind& draw_operation(Draw& draw) { return *draw.of(chosen()); }

Span draw_span(Draw& draw, std::size_t region, std::size_t region_bytes, std::size_t bytes) {
    bytes = std::min(bytes, region_bytes);
    std::size_t offset = draw.below(region_bytes - bytes + 1);
    if (draw.one_in(3)) offset = offset / 4096 * 4096;
    return {region, offset, bytes};
}

Move draw_move(Player& player, Draw& draw) {
    Memory& memory = player.memory();
    const auto regions =
        memory.regions_of({RegionKind::pageable, RegionKind::pinned, RegionKind::mixed,
                           RegionKind::managed, RegionKind::device});
    const auto of_gpus = memory.regions_of({RegionKind::device});
    // Most copies have a side on a GPU.
    std::size_t to = draw.of(regions);
    std::size_t from = draw.of(regions);
    if (memory.on_host(to) && memory.on_host(from) && !draw.one_in(4)) {
        (draw.one_in(2) ? to : from) = draw.of(of_gpus);
    }
    std::size_t most = std::min(memory.bytes(to), memory.bytes(from));
    if (to != from) {
        const std::size_t bytes = draw.bytes(most);
        return {draw_span(draw, to, memory.bytes(to), bytes),
                draw_span(draw, from, memory.bytes(from), bytes)};
    }
    most /= 2;
    const std::size_t bytes = draw.bytes(most);
    Move move{draw_span(draw, to, most, bytes), draw_span(draw, to, most, bytes)};
    (draw.one_in(2) ? move.to : move.from).offset += most;
    return move;
}

double draw_limit(Draw& draw) {
    static constexpr std::array<double, 6> kLimits = {-1, -1, 0, 1e-4, 0.01, 30};
    return draw.of(kLimits);
}

std::string form_text(Form form, double limit) {
    switch (form) {
        case Form::stream: return "";
        case Form::wait: return "_and_wait(limit " + std::to_string(limit) + ")";
        case Form::handle: break;
    }
    return "_async";
}

bool draw_held(Player& player, Draw& draw, const Call& call) {
    const bool held = draw.one_in(5);
    if (!call.ordered || call.form == Form::stream) return false;
    if (call.form == Form::wait && (call.limit < 0 || call.limit > 1)) return false;
    for (const Move& move : call.moves) {
        for (const std::size_t region : {move.to.region, move.from.region}) {
            // The runtime's own copies of managed memory may block.
            if (player.memory().kind(region) == RegionKind::managed) return false;
        }
    }
    return held;
}

}  // namespace waywiser::fuzz
