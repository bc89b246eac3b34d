// Transfers of one or several operations: what all calls of the interface come to.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "transfer/caller_stream.hpp"
#include "transfer/completion.hpp"
#include "transfer/direct_list.hpp"
#include "transfer/file_copy.hpp"
#include "transfer/piece_list.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

struct RangeCopy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
};

struct FileRead {
    FileRange from;
    void* to = nullptr;
    std::size_t bytes = 0;
};

struct FileWrite {
    FileRange to;
    const void* from = nullptr;
    std::size_t bytes = 0;
    WriteEnd end{};
};

// A list that was checked and whose memory is known; see grouped().
struct GroupedList {
    std::vector<PieceGroup> groups;
};

using Operation = std::variant<RangeCopy, CopyList, GroupedList, FileRead, FileWrite>;

// The bytes of all operations.
std::size_t bytes_of(std::span<const Operation> operations);

// Throws InvalidCopy if memory that one operation writes is read or written by another one. Each
// operation alone was checked when it was made. Files are not compared.
void check_apart(std::span<const Operation> operations);

// What a caller waits for.
enum class SubmitMode {
    in_stream,  // later work in the stream starts after the transfer, as with cudaMemcpyAsync
    at_once,    // nothing: the transfer is started
    host_free,  // the host's side is free, or the deadline is over
    snapshot,   // nothing; later work in the stream does not wait for the copies either
};

struct Submitted {
    std::optional<Completion> left;  // what goes on, if it does not end with the stream
    bool ended = false;              // host_free: nothing uses the GPU's side any more either
};

// Moves all operations in the order of the stream, and in any order among themselves; their memory
// must be apart. `moved`: bytes of files that were moved when the call returns, also if it throws.
// Throws what a single operation throws; then nothing uses the memory of any of them any more,
// unless it is MemoryInUse.
Submitted submit(const std::shared_ptr<Engine>& engine, std::span<Operation> operations,
                 const CallerStream& stream, SubmitMode mode, const Deadline& deadline,
                 std::size_t& moved);

// Operations that are submitted again and again: their lists are checked and grouped once, and own
// their indexes. Thread safe. The memory must stay allocated and registered as it is.
class PreparedOperations {
public:
    // Throws like submit().
    PreparedOperations(std::shared_ptr<Engine> engine, std::vector<Operation> operations);
    Submitted submit(const CallerStream& stream, SubmitMode mode, const Deadline& deadline,
                     std::size_t& moved) const;
    [[nodiscard]] const std::shared_ptr<Engine>& engine() const { return engine_; }
    [[nodiscard]] std::span<const Operation> operations() const { return operations_; }

private:
    const std::shared_ptr<Engine> engine_;
    std::vector<std::vector<std::int64_t>> indexes_;
    std::vector<Operation> operations_;
};

}  // namespace waywiser::transfer
