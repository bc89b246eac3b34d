// Memory of the fake's devices that other processes open: a file without a name, which they find by
// the process that made it and its descriptor there.
#pragma once

#include <cstddef>

namespace waywiser::fake {

// Memory of a device, which stays until all who have it or opened it have freed it. nullptr if
// there is none.
std::byte* make_foreign(std::size_t bytes, int device);
void free_foreign(std::byte* data) noexcept;

}  // namespace waywiser::fake
