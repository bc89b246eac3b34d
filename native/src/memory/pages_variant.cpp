#include "memory/pages_variant.hpp"

#include <fstream>
#include <string>

namespace waywiser {

std::optional<std::string> huge_pages_unsupported_reason(const Memory& memory) {
    if (page_size(memory) != host::PageSize::huge) return std::nullopt;
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string modes;
    if (!std::getline(file, modes)) return "this kernel has no transparent huge pages";
    if (modes.find("[never]") != std::string::npos) {
        return "transparent huge pages are switched off: "
               "/sys/kernel/mm/transparent_hugepage/enabled says never";
    }
    return std::nullopt;
}

}  // namespace waywiser
