// Lists of pieces and of blocks as callers of the C interface describe them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transfer/piece_list.hpp"

namespace waywiser::capi {

// Both throw InvalidCopy for a null pointer, and what list_of() and blocks_of() throw.
transfer::CopyList checked_list(void* const* to, const void* const* from, const std::size_t* sizes,
                                std::size_t count);

// One array of blocks as a caller describes it.
struct GivenBlocks {
    const void* data;
    std::size_t stride;
    std::size_t blocks;
    const std::int64_t* index;
};
transfer::CopyList checked_blocks(const GivenBlocks& to, const GivenBlocks& from, std::size_t block,
                                  std::size_t count);

}  // namespace waywiser::capi
