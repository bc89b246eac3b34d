// Free memory of a NUMA node. The kernel ends processes, not always the one that asked, if memory
// that is bound to a node does not fit there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <new>
#include <optional>
#include <string>

namespace waywiser::host {

// Bytes of a node that buffers may take: free memory and half of the clean file pages, since
// programs use some of them, less a margin for other processes; nullopt if the system does not
// state it.
std::optional<std::size_t> free_on_node(
    int node, const std::filesystem::path& nodes = "/sys/devices/system/node");

// Whether this process may allocate on a node: a control group can forbid it. True if the system
// does not say.
bool may_use_node(int node);

// A buffer does not fit on its node, or may not be there.
class NodeFull : public std::bad_alloc {
public:
    explicit NodeFull(std::string what) : what_(std::move(what)) {}
    [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

private:
    std::string what_;
};

// Throws NodeFull if the buffer does not fit on the node.
void require_free_on_node(int node, std::size_t bytes);

}  // namespace waywiser::host
