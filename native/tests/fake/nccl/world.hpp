// The ranks of the fake NCCL: memory that all of them map, in which each passes bytes on to
// another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace waywiser::fake::nccl {

inline constexpr int kMostRanks = 16;
inline constexpr std::size_t kChunk = std::size_t{64} << 10;
inline constexpr int kNoSum = -1;

struct Send {
    int to = 0;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
};
struct Receive {
    int from = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    int sum = kNoSum;  // type of the numbers that are added; kNoSum: the bytes replace
};

// What all ranks must start in the same form.
struct Kind {
    char name[16] = {};
    std::size_t bytes = 0;
    int type = 0;
    int root = 0;
    bool operator==(const Kind& other) const;
};

class World {
public:
    static std::shared_ptr<World> of_process(int size);
    // The name of a new one for several processes; empty if the system makes none.
    static std::string create();
    // Does not wait for the other ranks. nullptr if there is none of that name, if it has that
    // rank, or if a rank ended before all had joined. One that no rank ever joins, if the process
    // that created it has ended. Its memory is a file without a name in any folder: that of a
    // descriptor of that process, so that nothing is left of killed ones.
    static std::shared_ptr<World> join(const std::string& name, int rank, int size);
    // One that no rank ever joins.
    static std::shared_ptr<World> of_absent(int size);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    [[nodiscard]] int size() const { return size_; }
    // Whether all ranks have joined.
    [[nodiscard]] bool is_whole() const;
    // Whether another rank was aborted.
    [[nodiscard]] bool has_lost(int rank) const;

    // These return when all ranks have done the same, or when the own one is aborted.
    void await_all(int rank);
    void start(int rank, const Kind& kind);
    void finish(int rank);
    // Returns when all bytes are sent and received, or as they do.
    void exchange(int rank, std::vector<Send> sends, std::vector<Receive> receives);
    // The other ranks wait for it until they are aborted too.
    void abort(int rank);

private:
    struct Shared;
    class Lock;
    World(Shared* shared, int size, std::string name)
        : shared_(shared), size_(size), name_(std::move(name)) {}
    bool pass(int rank, std::vector<Send>& sends, std::vector<Receive>& receives);

    Shared* shared_;
    int size_;
    std::string name_;  // empty for one process
};

}  // namespace waywiser::fake::nccl
