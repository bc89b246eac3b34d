#include "copy_preparation.hpp"

#include <cstdint>
#include <utility>

#include "block_index.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// Sets the blocks of a copy. If they have two places, in arrays with positive strides, they are
// passed to the library as blocks: comparing indexes takes less time than comparing pieces.
void set_blocks(BlockList blocks, const char* call, Submission& submission) {
    const auto block = static_cast<std::int64_t>(blocks.block);
    const bool with_gpu = !submission.to_host || !submission.from_host;
    if (blocks.count() < 2 || block == 0 || !with_gpu || blocks.to_stride < block ||
        blocks.from_stride < block) {
        return set_pieces(pieces_of(blocks), call, submission);
    }
    if (!submission.to_host && !submission.from_host) {  // they may be blocks of one array
        check_indexes(blocks);
        std::size_t in_place = 0;
        while (in_place < blocks.count() && blocks.at(in_place).to == blocks.at(in_place).from) {
            ++in_place;
        }
        if (in_place == blocks.count()) return;
    }
    submission.bytes = blocks.count() * blocks.block;
    submission.blocks = std::move(blocks);
}

}  // namespace

Pair::Pair(const Context& context, nb::handle to_object, nb::handle from_object,
           const std::optional<void*>& stream, const char* call, HeldOperands& kept) {
    read_operand(to_object, Role::destination, stream, to, kept.to);
    read_operand(from_object, Role::source, stream, from, kept.from);
    check_compatible(to, from, call);
    context->check_reaches(to);
    context->check_reaches(from);
}

void Pair::find_gpus() {
    for (Operand* operand : {&to, &from}) operand->gpu = known_gpu(*operand);
}

void set_places(const Pair& pair, const std::optional<void*>& requested, Submission& submission) {
    submission.to_host = pair.to_host();
    submission.from_host = pair.from_host();
    submission.names_stream = requested.has_value();
    submission.streams = choose_streams(requested, pair.to, pair.from);
}

bool is_in_place(const Pair& pair) {
    return pair.to.contiguous && pair.from.contiguous &&
           (pair.to.data == pair.from.data || pair.to.bytes == 0);
}

void set_memory(const Pair& pair, Submission& submission) {
    constexpr const char* kCall = "copy";
    const std::size_t bytes = pair.to.bytes;
    if (pair.to.contiguous && pair.from.contiguous &&
        !share_bytes(pair.to.data, pair.from.data, bytes)) {
        submission.to = pair.to.data;
        submission.from = pair.from.data;
        submission.bytes = bytes;
        return;
    }
    PieceList pieces;
    add_pieces(pair.to, pair.from, kCall, pieces);
    set_pieces(std::move(pieces), kCall, submission);
}

void set_pieces(PieceList pieces, const char* call, Submission& submission) {
    if (pieces.count() == 0 || is_identity(pieces)) return;
    // The library checks copies with a GPU.
    if (submission.to_host && submission.from_host) check_overlap(pieces, call);
    submission.bytes = pieces.bytes;
    if (pieces.count() == 1) {
        submission.to = pieces.to[0];
        submission.from = pieces.from[0];
    } else {
        submission.list = std::move(pieces);
    }
}

bool copied_by_torch(const Pair& pair, nb::handle to, nb::handle from,
                     const std::optional<void*>& stream, bool waits) {
    if (!has_too_many_pieces(pair.to, pair.from, "copy")) return false;
    nb::object number = nb::none();
    if (stream) number = nb::int_(reinterpret_cast<std::uintptr_t>(*stream));
    return nb::cast<bool>(nb::module_::import_("waywiser.transfer.many_pieces")
                              .attr("copy_by_torch")(
                                  to, from, reinterpret_cast<std::uintptr_t>(pair.to.data),
                                  reinterpret_cast<std::uintptr_t>(pair.from.data), number, waits));
}

Submission blocks_submission(const Context& context, BlockOperands& blocks,
                             const std::optional<void*>& requested) {
    Submission submission;
    Operand& to = blocks.destination;
    Operand& from = blocks.source;
    read_operand(blocks.to, Role::destination, requested, to, submission.kept.to);
    read_operand(blocks.from, Role::source, requested, from, submission.kept.from);
    context->check_reaches(to);
    context->check_reaches(from);
    BlockList list = blocks_of(to, from, blocks.to_index, blocks.from_index);
    submission.to_host = to.gpu == kHost;
    submission.from_host = from.gpu == kHost;
    submission.names_stream = requested.has_value();
    submission.streams = choose_streams(requested, to, from);
    set_blocks(std::move(list), "copy_blocks", submission);
    return submission;
}

}  // namespace waywiser::python
