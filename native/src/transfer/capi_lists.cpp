#include "transfer/capi_lists.hpp"

#include "transfer/capi_guard.hpp"

namespace waywiser::capi {

transfer::CopyList checked_list(void* const* to, const void* const* from, const size_t* sizes,
                                size_t count) {
    if (count > 0) {
        need_argument(to, "to", "an array of count destinations");
        need_argument(from, "from", "an array of count sources");
        need_argument(sizes, "sizes", "an array of count sizes");
    }
    return transfer::list_of({to, count}, {from, count}, {sizes, count});
}

transfer::CopyList checked_blocks(const GivenBlocks& to, const GivenBlocks& from, size_t block,
                                  size_t count) {
    if (count > 0) {
        need_argument(to.data, "to", "the memory of the destination");
        need_argument(from.data, "from", "the memory of the source");
        need_argument(to.index, "to_index", "an array of count block numbers");
        need_argument(from.index, "from_index", "an array of count block numbers");
    }
    const auto array = [count](const GivenBlocks& given) {
        return transfer::Blocks{.data = static_cast<std::byte*>(const_cast<void*>(given.data)),
                                .stride = given.stride,
                                .blocks = given.blocks,
                                .index = {given.index, count}};
    };
    return transfer::blocks_of(array(to), array(from), block);
}

}  // namespace waywiser::capi
