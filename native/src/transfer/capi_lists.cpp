#include "transfer/capi_lists.hpp"

#include "transfer/capi_guard.hpp"

namespace waywiser::capi {

transfer::CopyList checked_list(void* const* to, const void* const* from, const size_t* sizes,
                                size_t count) {
    need_array(to, count, "to", "count", "an array of count destinations");
    need_array(from, count, "from", "count", "an array of count sources");
    need_array(sizes, count, "sizes", "count", "an array of count sizes");
    return transfer::list_of({to, count}, {from, count}, {sizes, count});
}

transfer::CopyList checked_blocks(const GivenBlocks& to, const GivenBlocks& from, size_t block,
                                  size_t count) {
    if (count > 0) {
        need_argument(to.data, "to", "the memory of the destination");
        need_argument(from.data, "from", "the memory of the source");
    }
    need_array(to.index, count, "to_index", "count", "an array of count block numbers");
    need_array(from.index, count, "from_index", "count", "an array of count block numbers");
    const auto array = [count](const GivenBlocks& given) {
        return transfer::Blocks{.data = static_cast<std::byte*>(const_cast<void*>(given.data)),
                                .stride = given.stride,
                                .blocks = given.blocks,
                                .index = {given.index, count}};
    };
    return transfer::blocks_of(array(to), array(from), block);
}

}  // namespace waywiser::capi
