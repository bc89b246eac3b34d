#include "pending_transfers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "contexts.hpp"
#include "errors.hpp"
#include "gil_release.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// Interval at which signals are handled, too short to be noticed.
constexpr double kSlice = 0.1;
// Transfers that a call checks, so that its time does not depend on their number.
constexpr std::size_t kPolls = 4;

std::deque<std::shared_ptr<PendingTransfer>>& kept() {
    static auto& all = *new std::deque<std::shared_ptr<PendingTransfer>>();
    return all;
}

using Clock = std::chrono::steady_clock;

// Event descriptors that nobody waits for any more, but that the library will still write to.
std::deque<File>& unwritten() {
    static auto& all = *new std::deque<File>();
    return all;
}

bool is_readable(const File& file) {
    pollfd look{.fd = file.descriptor(), .events = POLLIN, .revents = 0};
    return poll(&look, 1, 0) == 1;
}

// Closes an event descriptor, or leaves that to a later call if the library has not written yet.
void retire(File event) {
    if (event.descriptor() >= 0 && !is_readable(event)) unwritten().push_back(std::move(event));
}

void close_written() {
    auto& all = unwritten();
    for (std::size_t polls = std::min(kPolls, all.size()); polls > 0; --polls) {
        File event = std::move(all.front());
        all.pop_front();
        retire(std::move(event));
    }
}

std::string seconds_text(double seconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g s", seconds);
    return text.data();
}

// `what`: what is missing without a descriptor; `where`: the call, for a message.
File descriptor_or_raise(int descriptor, const char* what, std::string where) {
    const int error = errno;
    if (descriptor < 0) {
        raise(Failure::file,
              {.what = std::string(what) + ": " + std::strerror(error),
               .where = std::move(where),
               .remedy = file_remedy(error)},
              0, error);
    }
    return File(descriptor, std::move(where));
}

double seconds_until(Clock::time_point end) {
    return std::chrono::duration<double>(end - Clock::now()).count();
}

}  // namespace

File::~File() {
    if (descriptor_ >= 0) close(descriptor_);
}

File File::duplicate() const {
    return descriptor_or_raise(fcntl(descriptor_, F_DUPFD_CLOEXEC, 0), "no descriptor", call_);
}

PendingTransfer::PendingTransfer(waywiser_transfer* transfer, std::size_t bytes, Held held,
                                 Streams streams, File file)
    : transfer_(transfer),
      bytes_(bytes),
      held_(std::move(held)),
      streams_(streams),
      file_(std::move(file)),
      file_call_(file_.call()),
      process_(fork_count()) {
    if (transfer_ == nullptr) settle(WAYWISER_OK);
}

void keep_for_ever(Held& held) {
    for (nb::object& object : held) object.release();
    held.clear();
}

PendingTransfer::~PendingTransfer() {
    if (!of_this_process()) {
        keep_for_ever(held_);  // as in the parent
        return;
    }
    if (transfer_ == nullptr) return;
    // This may also destroy a closed context, which waits for GPUs to free staging memory.
    const GilRelease unlocked;
    waywiser_transfer_release(transfer_);
}

bool PendingTransfer::of_this_process() const { return process_ == fork_count(); }

void PendingTransfer::check_process() const {
    if (!of_this_process()) raise_forked();
}

void PendingTransfer::settle(waywiser_status status) {
    settled_ = true;
    keep_if_in_use(status, held_);
    if (notifying_ == 0) retire(std::exchange(event_, File()));
    file_ = File();
    // Last, and from a copy: destroying an object may run code that calls this module.
    const Held held = std::exchange(held_, {});
}

bool PendingTransfer::done() {
    if (settled_) return true;
    check_process();
    if (waywiser_transfer_done(transfer_) == 0) return false;
    settle(waywiser_transfer_result(transfer_, 0, nullptr));
    return true;
}

std::size_t PendingTransfer::wait(std::optional<double> seconds) {
    if (transfer_ == nullptr) return bytes_;
    check_process();
    if (seconds && (std::isnan(*seconds) || *seconds < 0)) {
        raise(Failure::invalid_transfer,
              {.what = "the timeout is " + seconds_text(*seconds),
               .where = "TransferHandle.result",
               .remedy = "pass seconds from 0 on, or None to wait without limit"});
    }
    const bool limited = seconds && *seconds < 1e9;  // else the end exceeds the clock's range
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(limited ? *seconds : 0));
    double slice = limited ? std::min(kSlice, *seconds) : kSlice;
    for (;;) {
        std::size_t moved = 0;
        waywiser_status status = WAYWISER_OK;
        {
            const GilRelease unlocked;
            status = waywiser_transfer_result(transfer_, slice, &moved);
        }
        if (status != WAYWISER_TIMEOUT) {
            if (status == WAYWISER_OK) {
                settle(status);
                return moved;
            }
            const std::string message = waywiser_last_error();  // settle() may call the library
            const int error = waywiser_last_errno();
            settle(status);
            raise_status(status, message, moved, error, file_call_);
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!limited) continue;
        slice = std::min(kSlice, seconds_until(end));
        if (slice > 0) continue;
        raise(
            Failure::timeout,
            {.what = "the transfer has not ended within " + seconds_text(*seconds) + " and goes on",
             .where = "TransferHandle.result",
             .remedy = "wait longer"},
            moved);
    }
}

void PendingTransfer::order(const std::optional<void*>& stream) {
    order_by(waywiser_transfer_wait, stream);
}

void PendingTransfer::order_change(const std::optional<void*>& stream) {
    order_by(waywiser_transfer_wait_source_read, stream);
}

bool PendingTransfer::source_read_pending() const {
    if (transfer_ == nullptr) return false;
    check_process();
    return waywiser_transfer_source_read_pending(transfer_) != 0;
}

void PendingTransfer::order_by(OrderCall call, const std::optional<void*>& stream) {
    if (transfer_ == nullptr) return;
    check_process();
    // The number of a default stream means that of the operand's GPU, not of the current one.
    order_stream(call, stream ? with_gpu(*stream, streams_.gpu) : streams_.carrier);
    if (!stream && streams_.other) order_stream(call, *streams_.other);
}

void PendingTransfer::order_stream(OrderCall call, void* stream) {
    for (;;) {
        waywiser_status status = WAYWISER_OK;
        {
            const GilRelease unlocked;
            status = call(transfer_, stream, kSlice);
        }
        if (status != WAYWISER_TIMEOUT) return check(status);
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
}

int PendingTransfer::descriptor() {
    check_process();
    const bool is_new = event_.descriptor() < 0;
    const auto event = [](int made) {
        return descriptor_or_raise(made, "no event descriptor", "TransferHandle");
    };
    if (is_new) event_ = event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    // Before other threads run: they may release the event.
    File copy = event(fcntl(event_.descriptor(), F_DUPFD_CLOEXEC, 0));
    if (is_new) notify_event();
    return copy.release();
}

// Asks the library to write to the event at the end. The event stays open and readable until then.
void PendingTransfer::notify_event() {
    if (settled_) {
        eventfd_write(event_.descriptor(), 1);
        return;
    }
    ++notifying_;
    waywiser_status status = WAYWISER_OK;
    {
        const GilRelease unlocked;
        status = waywiser_transfer_notify(transfer_, event_.descriptor());
    }
    --notifying_;
    // After a failure nothing is written: waiters find out from result().
    if (status != WAYWISER_OK) eventfd_write(event_.descriptor(), 1);
    if (status != WAYWISER_OK || settled_) retire(std::exchange(event_, File()));
    check(status);
}

void keep(const std::shared_ptr<PendingTransfer>& pending) {
    if (!pending->settled()) kept().push_back(pending);
}

void prune() {
    auto& all = kept();
    if (all.empty() && unwritten().empty()) return;
    close_written();
    for (std::size_t polls = std::min(kPolls, all.size()); polls > 0 && !all.empty(); --polls) {
        const std::shared_ptr<PendingTransfer> pending = std::move(all.front());
        all.pop_front();
        if (!pending->of_this_process() || !pending->done()) all.push_back(pending);
    }
}

void prune_all() {
    for (std::size_t left = kept().size(); left > 0; --left) prune();
}

}  // namespace waywiser::python
