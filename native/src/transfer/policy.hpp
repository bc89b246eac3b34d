// The policy of a machine: which method is fastest for a copy. docs/policy.md describes the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/chunked_copy.hpp"

namespace waywiser::transfer {

// What policies know machines by. An empty text and 0 are unknown.
struct Fingerprint {
    std::string gpu;
    std::string gpu_link;  // "PCIe 5 x16"
    std::string cpu;
    std::uint64_t driver = 0;  // major version
    std::string hypervisor;    // "none": bare metal
    bool operator==(const Fingerprint&) const = default;
};

// Where memory of a copy is, as a policy distinguishes it.
enum class PolicyMemory : std::uint8_t { pageable, pinned, device, file, fresh };
// How two GPUs are related; none: not both sides are on GPUs.
enum class PolicyRelation : std::uint8_t { none, same, peers, no_peers };

struct PolicyKey {
    PolicyMemory from = PolicyMemory::pageable;
    PolicyMemory to = PolicyMemory::pageable;
    PolicyRelation relation = PolicyRelation::none;
    bool peers_idle = false;

    static constexpr std::size_t kCells = std::size_t{5} * 5 * 4 * 2;
    [[nodiscard]] constexpr std::size_t cell() const {
        const auto at = static_cast<std::size_t>(from) * 5 + static_cast<std::size_t>(to);
        return (at * 4 + static_cast<std::size_t>(relation)) * 2 + (peers_idle ? 1 : 0);
    }
    bool operator==(const PolicyKey&) const = default;
};

enum class PolicyMethod : std::uint8_t {
    standard,  // what the library would do without a policy: it cannot do what the row says
    plain,     // a copy of the GPU runtime
    chunked,   // in chunks by the library's threads
    batch,     // the runtime's batched copy of a list
    kernel,    // a list, by loads and stores of a GPU
    pipeline,  // a list that is contiguous in host memory, through staging memory on the GPU
};

struct PolicyRow {
    std::uint64_t from_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t count = 1;
    std::uint64_t threads = 1;
    std::uint64_t pieces = 1;      // of the measured list
    bool host_contiguous = false;  // of lists that are contiguous in host memory
    double seconds = 0;
    double low = 0;
    double high = 0;

    std::string executor;
    PolicyMethod method = PolicyMethod::standard;
    CopyShape shape;           // of a chunked copy, without relays, or of a pipeline
    bool over_relays = false;  // it uses relays: at most `relays` of them
    std::size_t relays = 0;
    unsigned blocks = 1;  // of a kernel or a pipeline
};

struct PolicyClass {
    PolicyKey key;
    std::vector<PolicyRow> rows;
};

struct Policy {
    Fingerprint machine;
    std::vector<PolicyClass> classes;
};

// The text is no policy, or has a value outside its bounds: nothing of it is used.
class PolicyDamage : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kMostPolicyBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostPolicyRows = 16384;

// Throws PolicyDamage.
Policy parse_policy(std::string_view text);

// How one machine differs from the policy's, in words; empty if the policy fits it. `links`: what
// the GPU's link may be called.
std::string difference(const Fingerprint& policy, const Fingerprint& here,
                       const std::vector<std::string>& links);

// Limits of a context that a policy does not exceed.
struct PolicyLimits {
    std::size_t threads = 1;
    std::vector<int> relays;
    std::size_t host_slot = 0;         // maximum size of a slot of pinned memory
    std::size_t relay_slot = 0;        // and of a slot on a relay
    std::size_t max_queued_bytes = 0;  // queued on a copy engine; 0: no limit
    unsigned multiprocessors = 0;      // for a list over a GPU's link; 0: no limit
};

// The decision for copies from a size on, within the limits of a context.
struct PolicyDecision {
    PolicyMethod method = PolicyMethod::standard;
    CopyShape shape;  // with all relays of the context
    unsigned blocks = 1;
    const PolicyRow* row = nullptr;  // never nullptr in a table

    // For a copy to or from a GPU, which is no relay of its own; -1 for none.
    [[nodiscard]] CopyShape shape_for(int gpu) const;
};

// The decisions of a policy for one context. Immutable. A look-up takes an index and a binary
// search.
class PolicyTable {
public:
    PolicyTable(std::shared_ptr<const Policy> policy, const PolicyLimits& limits);

    // Whether the policy says anything about contiguous copies of this class.
    [[nodiscard]] bool has(const PolicyKey& key) const { return !copies_[key.cell()].empty(); }
    // Decides about a contiguous copy. nullptr: the policy says nothing.
    [[nodiscard]] const PolicyDecision* copy(const PolicyKey& key, std::size_t bytes) const {
        return copies_[key.cell()].at(bytes);
    }
    // The lists that rows are of.
    enum class Lists : std::uint8_t { scattered, host_contiguous };
    // Whether the policy says anything about such lists of this class.
    [[nodiscard]] bool has(const PolicyKey& key, Lists lists) const {
        return !curves_of(lists)[key.cell()].empty();
    }
    // Decides about a list of `count` pieces of about `bytes` each. nullptr: the policy says
    // nothing.
    [[nodiscard]] const PolicyDecision* list(const PolicyKey& key, Lists lists, std::size_t count,
                                             std::size_t bytes) const;
    // Smaller contiguous copies between memories are plain, whatever their class, if those of the
    // library's defaults are plain below `standard`. `with_gpu`: those from or to memory of a GPU.
    [[nodiscard]] std::size_t plain_below(std::size_t standard, bool with_gpu = false) const;

private:
    // Decisions from growing sizes on.
    struct Curve {
        std::size_t count = 1;
        std::vector<std::size_t> from;
        std::vector<PolicyDecision> decisions;

        [[nodiscard]] bool empty() const { return from.empty(); }
        [[nodiscard]] const PolicyDecision* at(std::size_t bytes) const;
        [[nodiscard]] std::size_t plain_below(std::size_t standard) const;
    };

    [[nodiscard]] static PolicyDecision bound(const PolicyRow& row, const PolicyLimits& limits);
    // Of the rows that `is_one_of` selects.
    template <class Select>
    [[nodiscard]] static std::vector<Curve> curves(const std::vector<PolicyRow>& rows,
                                                   const PolicyLimits& limits,
                                                   const Select& is_one_of);
    using CurvesOfLists = std::array<std::vector<Curve>, PolicyKey::kCells>;  // by growing count
    [[nodiscard]] const CurvesOfLists& curves_of(Lists lists) const {
        return lists == Lists::scattered ? scattered_ : host_contiguous_;
    }

    std::shared_ptr<const Policy> policy_;  // the decisions refer to its rows
    std::array<Curve, PolicyKey::kCells> copies_;
    CurvesOfLists scattered_, host_contiguous_;
};

}  // namespace waywiser::transfer
