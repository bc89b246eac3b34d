// Copies of many pieces: what each piece is is found out, and pieces alike are moved together.
#pragma once

#include <memory>

#include "transfer/copy.hpp"
#include "transfer/piece_list.hpp"

namespace waywiser::transfer {

// As copy() and copy_async(), for all pieces, in any order. What a GPU reaches is moved on the
// caller's stream: by the copy engine where the pieces are long, else by a kernel that takes one
// multiprocessor (list_method.hpp). What it does not goes through staging. Where pieces of several
// places go through staging, copy_list_async() returns when those of all but one have arrived.
void copy_list(Engine& engine, CopyList list, const CallerStream& stream);
Started copy_list_async(const std::shared_ptr<Engine>& engine, CopyList list,
                        const CallerStream& stream);

}  // namespace waywiser::transfer
