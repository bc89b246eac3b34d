// Messages of the MPI of this machine, through its compiled bridge (native/src/mpi/bridge.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ranks/messenger.hpp"

namespace waywiser::ranks {

// A loaded bridge, which stays loaded until the process ends.
class Bridge {
public:
    // Loads it and the library that it was linked with. Throws MessengerError.
    explicit Bridge(const std::filesystem::path& file);
    ~Bridge();
    Bridge(const Bridge&) = delete;
    Bridge& operator=(const Bridge&) = delete;

    // What the library calls itself, in one line.
    [[nodiscard]] std::string library() const;
    [[nodiscard]] const Stage& stage() const;
    // Joins the world of this launch: all ranks, once in a process. The GPU that messages use is
    // selected before. A process that no launcher started is alone. The messenger, and its groups,
    // do not outlive the bridge.
    [[nodiscard]] std::unique_ptr<Messenger> join();
    // After join(): whether the library states that it takes pointers to memory of CUDA: 1, 0, or
    // -1 if it does not say. Only a try shows whether it does.
    [[nodiscard]] int cuda_stated() const;
    // After join(): "single", "funneled", "serialized" or "multiple".
    [[nodiscard]] std::string threads() const;
    // Leaves the world, after which there are no more messages.
    void leave();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waywiser::ranks
