// A communicator of NCCL between processes, which anything that needs another rank can end.
//
// Ownership: messengers share the connection. The GPU's memory and streams that messages use are
// the caller's, and outlive the messages.
// Thread safety: one thread at a time, except stop(), stage() and ended().
// Errors: all throw MessengerError, or NotSupported without NCCL. After one the communicator is
// aborted, and every later call throws.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "gpu/gpu.hpp"
#include "nccl/functions.hpp"
#include "ranks/messenger.hpp"

namespace waywiser::ranks {

class NcclConnection {
public:
    // For the rank's GPU. No joining and no message takes longer than `seconds`.
    NcclConnection(int gpu, double seconds);
    ~NcclConnection();
    NcclConnection(const NcclConnection&) = delete;
    NcclConnection& operator=(const NcclConnection&) = delete;

    // Joins all ranks that have this id, once, and returns when they have joined.
    void join(const nccl::UniqueId& id, int rank, int size);
    // Leaves the others when all that was sent has arrived, or after some seconds. The destructor
    // does, too.
    void leave() noexcept;
    // From any thread: ends the call that waits, or else the next one.
    void stop() noexcept { stopped_ = true; }
    // From any thread: "" while it can be used; "timeout" or "stopped" if a call has ended so;
    // "remote" if NCCL says that another rank is gone, "failed" if it says anything else.
    [[nodiscard]] std::string ended() const;

    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return size_; }
    [[nodiscard]] int gpu() const { return gpu_; }
    [[nodiscard]] nccl::Communicator communicator() const { return communicator_; }
    [[nodiscard]] Stage& stage() { return stage_; }

    // For one transfer, as long as the result is held: two would follow each other and not run
    // together. Throws NotSupported if another one holds it.
    [[nodiscard]] std::shared_ptr<const void> reserve();

    // Makes calls that are one operation, and returns when NCCL has put it on its streams. They
    // throw nccl::Error for a call that fails.
    void submit(const std::function<void()>& calls);
    // Returns when all work on the stream has ended.
    void await(const gpu::Stream& stream);

private:
    enum class End { none, timeout, stopped, remote, failed };

    void wait(const std::function<bool()>& done);
    // What NCCL says of the communicator: 0, in progress, or an error.
    [[nodiscard]] nccl::Result state() const;
    void require(nccl::Result result, const char* call);
    [[noreturn]] void fail(End how, const std::string& reason);
    void abort() noexcept;
    bool finalize() noexcept;

    const nccl::Functions& nccl_;
    const int gpu_;
    const double seconds_;
    int rank_ = 0;
    int size_ = 0;
    nccl::Communicator communicator_ = nullptr;
    Stage stage_;
    std::weak_ptr<const void> reserved_;
    std::atomic<bool> stopped_{false};
    std::atomic<End> end_{End::none};
};

// A new id, by which ranks find each other once. Throws NotSupported, MessengerError.
nccl::UniqueId new_nccl_id();

}  // namespace waywiser::ranks
