// Operations of one transfer: the objects Copy, CopyBlocks, Read and Write of
// waywiser/transfer/operations.py, checked and described for the library. Everything needs the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "copies.hpp"
#include "copy_preparation.hpp"
#include "file_call.hpp"
#include "streams.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

// The streams of several operations, which have to be the same.
class CommonStreams {
public:
    // `compares`: the caller names no stream, in which all operations are ordered.
    explicit CommonStreams(bool compares) : compares_(compares) {}
    // Takes the streams of the operation under way. `memory` is on its GPU; null if it has none.
    // Raises UnsupportedTransfer if they are others than those of an operation before.
    void add(const Streams& streams, const void* memory, std::size_t operation);
    [[nodiscard]] const Streams& all() const { return streams_; }

private:
    bool compares_;
    Streams streams_;
    std::optional<std::size_t> first_;  // operation that has given the streams
    bool on_gpu_ = false;               // which is on a GPU
};

class PreparedOperations {
public:
    // Checks the operations, a sequence; `requested` is the caller's stream. Moves nothing, and
    // opens no file. Raises what the call of each operation raises, with its number. `one_stream`:
    // without a requested stream, all have to be used in the same one.
    PreparedOperations(const Context& context, nanobind::handle operations,
                       const std::optional<void*>& requested, bool one_stream);

    // Opens the files, without which nothing can be submitted.
    void open_files();
    // Copies of more pieces than a list takes: lets PyTorch make them, and raises
    // UnsupportedTransfer if it cannot, or if `may_copy` is false.
    void finish_long_copies(const Context& context, bool may_copy);
    // Reports the writes to the libraries of the arrays that count them.
    void note_writes() const;
    // For the library. They refer to this object.
    [[nodiscard]] std::vector<waywiser_operation> described() const;
    // Raises InvalidTransfer with the numbers of the operations, if it finds why the library has
    // rejected them.
    void name_invalid() const;
    // The streams in which the libraries of the arrays use them now. Raises InvalidTransfer if the
    // memory of an array is not what it was.
    [[nodiscard]] Streams streams_now() const;

    [[nodiscard]] const Streams& streams() const { return streams_; }
    // Bytes that the library moves, and that PyTorch has moved.
    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] std::size_t moved() const { return moved_; }
    // Names the file in messages, if there is only one.
    [[nodiscard]] std::string file_call() const;
    // Releases ownership of the arrays and of the files.
    [[nodiscard]] Held take_held();
    [[nodiscard]] std::vector<File> take_files();

private:
    struct PreparedCopy {
        std::size_t operation = 0;
        Submission submission;
    };
    struct PreparedFile {
        std::size_t operation = 0;
        FileCall call;
    };
    // An operation with memory on a GPU: where its arrays were.
    struct Placed {
        std::size_t operation = 0;
        const void* to = nullptr;    // null: it writes a file
        const void* from = nullptr;  // null: it reads a file
    };

    void add(const Context& context, std::size_t operation, CommonStreams& streams);
    void add_copy(const Context& context, std::size_t operation, CommonStreams& streams);
    void add_blocks(const Context& context, std::size_t operation, CommonStreams& streams);
    void add_file(const Context& context, std::size_t operation, Direction direction,
                  CommonStreams& streams);
    void place(std::size_t operation, const Operand* to, const Operand* from,
               const Streams& streams, CommonStreams& common);
    void count_pieces(const Submission& added);
    [[nodiscard]] nanobind::object argument(std::size_t operation, const char* name) const;

    nanobind::tuple objects_;
    std::optional<void*> requested_;
    std::vector<PreparedCopy> copies_;
    std::vector<PreparedFile> files_;
    std::vector<std::size_t> long_copies_;  // entries of copies_ that a list does not take
    std::vector<Placed> placed_;
    std::size_t pieces_ = 0;
    std::size_t moved_ = 0;
    Streams streams_;
};

// Starts the operations as one transfer, and returns at once.
Handle submit_operations(const Context& context, nanobind::handle operations,
                         nanobind::handle stream);

}  // namespace waywiser::python
