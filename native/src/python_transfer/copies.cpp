#include "copies.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "block_index.hpp"
#include "copy_preparation.hpp"
#include "plain_buffer.hpp"
#include "submission.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// Copies few bytes between usual host arrays of one type and shape, without what other copies need.
// Returns false, without copying, if it is another copy or something may be wrong with it.
bool copied_at_once(ContextState& context, nb::handle to, nb::handle from, nb::handle stream) {
    if (!stream.is_none()) return false;
    auto by = type_by(to);
    if (by != type_by(from)) by = PlainBuffer::TypeBy::format;
    const PlainBuffer into(to, by);
    if (!into || into.is_read_only()) return false;
    const PlainBuffer out(from, by);
    const std::size_t bytes = into.bytes();
    if (!out || !into.is_like(out) || bytes == 0 || bytes >= kInline ||
        share_bytes(into.data(), out.data(), bytes)) {
        return false;
    }
    copy_on_host(context, into.data(), out.data(), bytes);
    return true;
}

// `waits`: the caller gets a handle, so that a copy by torch has to end first.
Submission prepare_copy(const Context& context, nb::handle to, nb::handle from, nb::handle stream,
                        bool waits) {
    Submission submission;
    const std::optional<void*> requested = stream_of(stream);
    const Pair pair(context, to, from, requested, "copy", submission.kept);
    set_places(pair, requested, submission);
    if (is_in_place(pair)) return submission;
    if (copied_by_torch(pair, to, from, requested, waits)) {
        submission.moved = pair.to.bytes;
    } else {
        set_memory(pair, submission);
    }
    note_write(to, pair.to);
    return submission;
}

std::string place(int gpu) {
    if (gpu == kHost) return "the host";
    return gpu == kSomeGpu ? "a GPU" : "gpu:" + std::to_string(gpu);
}

void check_same_place(int one, int other, Role role, std::size_t first, std::size_t index) {
    if (one == other) return;
    raise(Failure::unsupported,
          {.what = std::string(text(role)) + " " + std::to_string(index) + " is on " +
                   place(other) + ", " + std::to_string(first) + " is on " + place(one),
           .where = "copy_batch",
           .remedy = "make one call for each pair of places"});
}

void check_same_streams(const Streams& one, const Streams& other, std::size_t first,
                        std::size_t index) {
    if (one == other) return;
    raise(Failure::unsupported,
          {.what = "the arrays of pair " + std::to_string(index) +
                   " are used in another stream than those of pair " + std::to_string(first),
           .where = "copy_batch",
           .remedy = "order the streams and pass stream=, or make one call for each stream"});
}

// A new tuple: the attributes of an operand may run code that changes the caller's list.
nb::tuple sequence(nb::handle objects, const char* name) {
    PyObject* const all = PySequence_Tuple(objects.ptr());
    if (all != nullptr) return nb::steal<nb::tuple>(all);
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();
    raise(Failure::invalid_operand,
          {.what = std::string(name) + " is " + given(objects) + ", not a sequence of arrays",
           .where = "copy_batch",
           .remedy = "pass lists: copy_batch(dsts=[...], srcs=[...])"});
}

void require_as_many(const nb::tuple& destinations, const nb::tuple& sources, const char* call) {
    const std::size_t count = destinations.size();
    const std::size_t others = sources.size();
    if (count == others) return;
    raise(Failure::invalid_transfer, {.what = "dsts has " + std::to_string(count) +
                                              " arrays and srcs has " + std::to_string(others),
                                      .where = call,
                                      .remedy = "give each destination its source"});
}

// `writes`: the destinations will be written.
Submission prepare_batch(const Context& context, nb::handle to, nb::handle from, nb::handle stream,
                         const char* call = "copy_batch", bool writes = true) {
    prune();
    context->check_process();
    const nb::tuple destinations = sequence(to, "dsts");
    const nb::tuple sources = sequence(from, "srcs");
    const std::size_t count = destinations.size();
    require_as_many(destinations, sources, call);
    Submission submission;
    submission.kept.to.reserve(count);
    submission.kept.from.reserve(count);
    submission.operands = count;
    const std::optional<void*> requested = stream_of(stream);
    submission.names_stream = requested.has_value();
    PieceList pieces;
    std::optional<std::size_t> first;  // first pair with elements
    std::array<int, 2> places{};
    std::vector<std::size_t> written;  // destinations whose library counts writes
    for (std::size_t i = 0; i < count; ++i) {
        Pair pair(context, destinations[i], sources[i], requested, call, submission.kept);
        if (pair.to.bytes > 0) {  // an empty array has no place
            if (count > 1) pair.find_gpus();
            const Streams streams = choose_streams(requested, pair.to, pair.from);
            if (!first) {
                first = i;
                submission.to_host = pair.to_host();
                submission.from_host = pair.from_host();
                submission.streams = streams;
                places = {pair.to.gpu, pair.from.gpu};
            }
            check_same_place(places[0], pair.to.gpu, Role::destination, *first, i);
            check_same_place(places[1], pair.from.gpu, Role::source, *first, i);
            check_same_streams(submission.streams, streams, *first, i);
        }
        add_pieces(pair.to, pair.from, call, pieces);
        if (writes && pair.to.is_torch) written.push_back(i);
    }
    set_pieces(std::move(pieces), call, submission);
    for (const std::size_t i : written) note_torch_write(destinations[i]);
    return submission;
}

Submission prepare_blocks(const Context& context, nb::handle to, nb::handle from,
                          nb::handle to_index, nb::handle from_index, nb::handle stream,
                          bool writes = true) {
    prune();
    context->check_process();
    BlockOperands blocks{.to = to, .from = from, .to_index = to_index, .from_index = from_index};
    Submission submission = blocks_submission(context, blocks, stream_of(stream));
    if (writes) note_write(to, blocks.destination);
    return submission;
}

// What copy() would submit. `call` asks for it.
Submission planned_copy(const Context& context, nb::handle to, nb::handle from, const char* call) {
    prune();
    context->check_process();
    Submission submission;
    const Pair pair(context, to, from, std::nullopt, call, submission.kept);
    submission.to_host = pair.to_host();
    submission.from_host = pair.from_host();
    PieceList pieces;
    add_pieces(pair.to, pair.from, call, pieces);
    if (!is_identity(pieces)) check_overlap(pieces, call);
    set_pieces(std::move(pieces), call, submission);
    return submission;
}

// The library checks the indexes of blocks, but does not know their names and positions.
template <class Copy>
auto name_wrong_index(const Submission& submission, const Copy& copy) {
    try {
        return copy();
    } catch (const nb::python_error&) {
        check_indexes(submission.blocks);
        throw;
    }
}

}  // namespace

void copy(const Context& context, nb::handle to, nb::handle from, nb::handle stream) {
    prune();
    context->check_process();
    if (copied_at_once(*context, to, from, stream)) return;
    Submission submission = prepare_copy(context, to, from, stream, false);
    run(*context, submission);
}

Handle copy_async(const Context& context, nb::handle to, nb::handle from, nb::handle stream) {
    prune();
    context->check_process();
    Submission submission = prepare_copy(context, to, from, stream, true);
    return start(*context, submission);
}

void copy_batch(const Context& context, nb::handle to, nb::handle from, nb::handle stream) {
    Submission submission = prepare_batch(context, to, from, stream);
    run(*context, submission);
}

Handle copy_batch_async(const Context& context, nb::handle to, nb::handle from, nb::handle stream) {
    Submission submission = prepare_batch(context, to, from, stream);
    return start(*context, submission);
}

Handle snapshot_batch(const Context& context, nb::handle to, nb::handle from, nb::handle stream) {
    Submission submission = prepare_batch(context, to, from, stream, "snapshot_batch");
    if (submission.bytes > 0 && (!submission.to_host || submission.from_host)) {
        raise(Failure::unsupported,
              {.what = submission.to_host ? "the sources are on the host"
                                          : "the destinations are on a GPU",
               .where = "snapshot_batch",
               .remedy = "make snapshots of arrays on a GPU in host arrays, and copy others"});
    }
    return start_snapshot(*context, submission);
}

void copy_blocks(const Context& context, nb::handle to, nb::handle from, nb::handle to_index,
                 nb::handle from_index, nb::handle stream) {
    Submission submission = prepare_blocks(context, to, from, to_index, from_index, stream);
    name_wrong_index(submission, [&] { run(*context, submission); });
}

Handle copy_blocks_async(const Context& context, nb::handle to, nb::handle from,
                         nb::handle to_index, nb::handle from_index, nb::handle stream) {
    Submission submission = prepare_blocks(context, to, from, to_index, from_index, stream);
    return name_wrong_index(submission, [&] { return start(*context, submission); });
}

std::string explain(const Context& context, nb::handle to, nb::handle from, nb::handle to_index,
                    nb::handle from_index, nb::handle destinations, nb::handle sources) {
    const bool is_batch = !destinations.is_none() || !sources.is_none();
    const bool is_blocks = !to_index.is_none() || !from_index.is_none();
    if (is_batch) {
        if (is_blocks || !to.is_none() || !from.is_none()) {
            raise(Failure::invalid_operand,
                  {.what = "both one pair of arrays and lists of arrays are given",
                   .where = "explain",
                   .remedy = "pass dst and src, or dsts and srcs"});
        }
        const CallScope here("copy_batch");  // whose errors these are
        return explain_copy(*context, prepare_batch(context, destinations, sources, nb::none(),
                                                    "copy_batch", false));
    }
    if (is_blocks) {
        const CallScope here("copy_blocks");
        const Submission submission =
            prepare_blocks(context, to, from, to_index, from_index, nb::none(), false);
        return name_wrong_index(submission, [&] { return explain_copy(*context, submission); });
    }
    return explain_copy(*context, planned_copy(context, to, from, "explain"));
}

std::string copy_method(const Context& context, nb::handle to, nb::handle from) {
    return method_of_copy(*context, planned_copy(context, to, from, "copy_method"));
}

nb::dict usage(const Context& context) {
    context->check_process();
    waywiser_usage found{};
    found.size = sizeof found;
    check_use(
        use(*context, [&](waywiser_context* c) { return waywiser_context_usage(c, &found); }));
    nb::dict all;
    all["threads"] = found.threads;
    all["most_threads"] = found.most_threads;
    all["pinned_bytes"] = found.pinned_bytes;
    all["most_pinned_bytes"] = found.most_pinned_bytes;
    all["transfers"] = found.transfers;
    all["gpu_bytes"] = found.gpu_bytes;
    all["most_gpu_bytes"] = found.most_gpu_bytes;
    all["streams"] = found.streams;
    return all;
}

nb::dict stats_of(const waywiser_method_stats& found) {
    nb::dict one;
    one["transfers"] = found.transfers;
    one["bytes"] = found.bytes;
    one["seconds"] = found.seconds;
    one["failures"] = found.failures;
    one["cancellations"] = found.cancellations;
    return one;
}

nb::dict stats(const Context& context) {
    context->check_process();
    waywiser_stats found{};
    found.size = sizeof found;
    std::vector<waywiser_method_stats> of_methods;
    check_use(use(*context, [&](waywiser_context* c) {
        for (int method = 1; waywiser_method_name(static_cast<waywiser_method>(method)) != nullptr;
             ++method) {
            waywiser_method_stats& own = of_methods.emplace_back();
            own.size = sizeof own;
            const waywiser_status status =
                waywiser_context_method_stats(c, static_cast<waywiser_method>(method), &own);
            if (status != WAYWISER_OK) return status;
        }
        return waywiser_context_stats(c, &found);
    }));
    context->add_copies_on_host(found);
    context->add_copies_on_host(of_methods.front());
    nb::dict methods;
    for (std::size_t i = 0; i < of_methods.size(); ++i) {
        methods[waywiser_method_name(static_cast<waywiser_method>(i + 1))] =
            stats_of(of_methods[i]);
    }
    nb::dict all;
    all["transfers"] = found.transfers;
    all["bytes"] = found.bytes;
    all["failures"] = found.failures;
    all["cancellations"] = found.cancellations;
    all["staging_waits"] = found.staging_waits;
    all["staging_wait_seconds"] = found.staging_wait_seconds;
    all["wake_ups"] = found.wake_ups;
    all["peak_pinned_bytes"] = found.peak_pinned_bytes;
    all["methods"] = methods;
    return all;
}

std::vector<std::string> warnings(const Context& context) {
    context->check_process();
    return context->warnings();
}

}  // namespace waywiser::python
