// Copies of many pieces: groups pieces with the same kind of source and destination, and moves each
// group together.
#pragma once

#include <memory>
#include <vector>

#include "transfer/caller_stream.hpp"
#include "transfer/completion.hpp"
#include "transfer/direct_list.hpp"
#include "transfer/piece_list.hpp"
#include "transfer/wait_for_host.hpp"

namespace waywiser::transfer {

// Like copy(), copy_and_wait() and copy_async(), for all pieces, in any order. Pieces that a GPU
// can access are moved on the caller's stream: long ones by the copy engine, else by a kernel that
// uses a few multiprocessors (list_method.hpp). Others go through staging memory. Pieces in managed
// memory, and in several registrations, are copied before copy_list_async() returns, unless they
// are in pageable memory too.
void copy_list(Engine& engine, CopyList list, const CallerStream& stream);
// Groups the pieces of a list that has some. Throws InvalidCopy.
std::vector<PieceGroup> grouped(CopyList list);
std::size_t bytes_of(const std::vector<PieceGroup>& groups);
// The same calls for groups, which they change.
void copy_list(Engine& engine, std::vector<PieceGroup>& groups, const CallerStream& stream);
WaitResult copy_list_and_wait(const std::shared_ptr<Engine>& engine,
                              std::vector<PieceGroup>& groups, const CallerStream& stream,
                              const Deadline& deadline);
Completion copy_list_async(const std::shared_ptr<Engine>& engine, std::vector<PieceGroup>& groups,
                           const CallerStream& stream);
WaitResult copy_list_and_wait(const std::shared_ptr<Engine>& engine, CopyList list,
                              const CallerStream& stream, const Deadline& deadline);
Completion copy_list_async(const std::shared_ptr<Engine>& engine, CopyList list,
                           const CallerStream& stream);

enum class GroupMethod {
    direct,  // a GPU can access both sides
    staged,  // through slots, or by CPUs
    single,  // each piece separately: managed memory, several registrations, or few short pieces
};
struct GroupPlan {
    PieceGroup group;
    GroupMethod method = GroupMethod::single;
};
// How copy_list() would move the groups of a list in a stream of their GPU. Moves nothing. Throws
// like copy_list().
std::vector<GroupPlan> plan_list(Engine& engine, CopyList list);

}  // namespace waywiser::transfer
