#include "ranks/nccl_connection.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <sstream>
#include <thread>
#include <utility>

#include "host/clock.hpp"
#include "nccl/library.hpp"
#include "waywiser/words.hpp"

namespace waywiser::ranks {
namespace {

// Seconds between two questions whether NCCL has an error.
constexpr double kLook = 1e-3;
// A wait that is longer sleeps between two looks, each time for a thousandth of the wait so far.
constexpr double kSpin = 0.05;
constexpr double kLongestNap = 5e-3;
constexpr auto kNap = std::chrono::microseconds(50);
// The longest that leaving takes: others may be gone.
constexpr double kLeave = 5;

const nccl::Functions& capable_functions() {
    const nccl::Functions& found = nccl::functions();
    if (found.comm_init_rank_config == nullptr || found.comm_get_async_error == nullptr ||
        found.comm_finalize == nullptr) {
        throw NotSupported("NCCL " + nccl::version() +
                           " cannot end a communicator that waits: ranks need 2.14 or newer");
    }
    return found;
}

}  // namespace

NcclConnection::NcclConnection(int gpu, double seconds)
    : nccl_(capable_functions()), gpu_(gpu), seconds_(seconds) {}

NcclConnection::~NcclConnection() { leave(); }

void NcclConnection::leave() noexcept {
    if (communicator_ == nullptr) return;
    if (finalize()) {
        nccl_.comm_destroy(std::exchange(communicator_, nullptr));
    } else {
        abort();
    }
}

void NcclConnection::join(const nccl::UniqueId& id, int rank, int size) {
    if (size_ != 0) throw MessengerError("ranks are joined once in a connection");
    rank_ = rank;
    size_ = size;
    const Stage::Entered in(stage_, "joining of ranks");
    const gpu::Stream selects(gpu_);  // NCCL takes the thread's current GPU
    int version = 0;
    require(nccl_.get_version(&version), "ncclGetVersion");
    nccl::Config config;
    config.version = static_cast<unsigned>(version);
    require(nccl_.comm_init_rank_config(&communicator_, size, id, rank, &config),
            "ncclCommInitRankConfig");
    wait([this] { return state() == nccl::kSuccess; });
}

std::string NcclConnection::ended() const {
    switch (end_.load()) {
        case End::none: return "";
        case End::timeout: return "timeout";
        case End::stopped: return "stopped";
        case End::remote: return "remote";
        case End::failed: break;
    }
    return "failed";
}

std::shared_ptr<const void> NcclConnection::reserve() {
    if (!reserved_.expired()) {
        throw NotSupported("a rank of NCCL has one transfer at a time: others would wait for it");
    }
    auto held = std::make_shared<const char>('\0');
    reserved_ = held;
    return held;
}

void NcclConnection::submit(const std::function<void()>& calls) {
    if (communicator_ == nullptr) throw MessengerError("the ranks are not connected");
    require(nccl_.group_start(), "ncclGroupStart");
    try {
        calls();
    } catch (const std::exception& error) {
        // Whatever it was: an open group would hold back all later calls of this thread.
        nccl_.group_end();
        fail(End::failed, error.what());
    }
    require(nccl_.group_end(), "ncclGroupEnd");
    wait([this] { return state() == nccl::kSuccess; });
}

void NcclConnection::await(const gpu::Stream& stream) {
    wait([&] { return stream.done(); });
}

void NcclConnection::wait(const std::function<bool()>& done) {
    if (communicator_ == nullptr) throw MessengerError("the ranks are not connected");
    const double began = host::now();
    for (double looked = began; !done();) {
        if (stopped_) fail(End::stopped, "was ended from outside");
        const double now = host::now();
        if (now - began > seconds_) {
            std::ostringstream text;
            text << "took longer than " << seconds_ << " s";
            fail(End::timeout, text.str());
        }
        if (now - looked > kLook) {
            looked = now;
            if (const nccl::Result found = state();
                found != nccl::kSuccess && found != nccl::kInProgress) {
                fail(found == nccl::kRemoteError ? End::remote : End::failed,
                     nccl_.get_error_string(found));
            }
        }
        if (now - began > kSpin) {
            const double nap = std::min((now - began) / 1000, kLongestNap);
            std::this_thread::sleep_for(std::chrono::duration<double>(nap));
        } else {
            std::this_thread::yield();
        }
    }
}

nccl::Result NcclConnection::state() const {
    nccl::Result found = nccl::kSuccess;
    const nccl::Result result = nccl_.comm_get_async_error(communicator_, &found);
    return result == nccl::kSuccess ? found : result;
}

void NcclConnection::require(nccl::Result result, const char* call) {
    if (result == nccl::kSuccess || result == nccl::kInProgress) return;
    fail(End::failed, std::string(call) + " failed: " + nccl_.get_error_string(result));
}

void NcclConnection::fail(End how, const std::string& reason) {
    const std::string doing = stage_.text();
    end_ = how;
    abort();
    throw MessengerError("NCCL, " + (doing.empty() ? "" : doing + ": ") + reason);
}

void NcclConnection::abort() noexcept {
    if (communicator_ != nullptr) nccl_.comm_abort(std::exchange(communicator_, nullptr));
}

// Whether all that was sent has arrived, so that no rank needs this one any more.
bool NcclConnection::finalize() noexcept {
    const nccl::Result started = nccl_.comm_finalize(communicator_);
    if (started != nccl::kSuccess && started != nccl::kInProgress) return false;
    const double until = host::now() + std::min(seconds_, kLeave);
    while (!stopped_ && host::now() < until) {
        const nccl::Result found = state();
        if (found != nccl::kInProgress) return found == nccl::kSuccess;
        std::this_thread::sleep_for(kNap);
    }
    return false;
}

nccl::UniqueId new_nccl_id() {
    nccl::UniqueId id{};
    try {
        nccl::check(capable_functions().get_unique_id(&id), "ncclGetUniqueId");
    } catch (const nccl::Error& error) {
        throw MessengerError(error.what());
    }
    return id;
}

}  // namespace waywiser::ranks
