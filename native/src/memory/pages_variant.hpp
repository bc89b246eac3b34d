// The `pages` variant of ordinary host memory.
#pragma once

#include "host/pages.hpp"
#include "waywiser/registry.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

inline Parameter pages_variant() {
    return {.name = "pages",
            .description = "size of the pages asked for: the base page, or transparent huge pages",
            .choices = {"standard", "huge"}};
}

inline host::PageSize page_size(const Memory& memory) {
    const auto it = memory.variant.find("pages");
    return it != memory.variant.end() && it->second == "huge" ? host::PageSize::huge
                                                              : host::PageSize::standard;
}

// Returns why huge pages are not available although requested, or nullopt.
std::optional<std::string> huge_pages_unsupported_reason(const Memory& memory);

}  // namespace waywiser
