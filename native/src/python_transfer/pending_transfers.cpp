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

// Event descriptors that no thread waits for any more, but that the library will still write to.
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

// Divides a wait into intervals, between which signals are handled.
class SlicedWait {
public:
    // Without limit for nullopt. Raises InvalidTransfer for a time that is none; `call` is the name
    // of the call in the message.
    SlicedWait(std::optional<double> seconds, const char* call) {
        if (!seconds) return;
        if (std::isnan(*seconds) || *seconds < 0) {
            raise(Failure::invalid_transfer,
                  {.what = "the timeout is " + seconds_text(*seconds),
                   .where = call,
                   .remedy = "pass seconds from 0 on, or None to wait without limit"});
        }
        if (*seconds >= 1e9) return;  // the end exceeds the clock's range
        slice_ = std::min(kSlice, *seconds);
        end_ = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
    }
    // Seconds of the next interval.
    [[nodiscard]] double slice() const { return slice_; }
    // Handles signals after an interval. Returns false if the time is over.
    bool goes_on() {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!end_) return true;
        slice_ = std::min(kSlice, seconds_until(*end_));
        return slice_ > 0;
    }

private:
    double slice_ = kSlice;
    std::optional<Clock::time_point> end_;
};

// The exception for a status of the library.
nb::object error_of(waywiser_status status, const std::string& message, std::size_t moved,
                    int error, const std::string& file_call) {
    try {
        raise_status(status, message, moved, error, file_call);
    } catch (const nb::python_error& raised) {
        return nb::borrow(raised.value());
    }
}

}  // namespace

File::~File() {
    if (descriptor_ >= 0) close(descriptor_);
}

File File::duplicate() const {
    return descriptor_or_raise(fcntl(descriptor_, F_DUPFD_CLOEXEC, 0), "no descriptor", call_);
}

std::vector<File> files_of(File file) {
    std::vector<File> files;
    if (file.descriptor() >= 0) files.push_back(std::move(file));
    return files;
}

PendingTransfer::PendingTransfer(StartedTransfer started)
    : transfer_(started.transfer),
      bytes_(started.bytes),
      moved_before_(started.moved_before),
      held_(std::move(started.held)),
      streams_(started.streams),
      files_(std::move(started.files)),
      file_call_(std::move(started.file_call)),
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
    files_.clear();
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
    for (SlicedWait limit(seconds, "TransferHandle.result");;) {
        std::size_t moved = 0;
        waywiser_status status = WAYWISER_OK;
        {
            const GilRelease unlocked;
            status = waywiser_transfer_result(transfer_, limit.slice(), &moved);
        }
        moved += moved_before_;
        if (status == WAYWISER_OK) {
            settle(status);
            return moved;
        }
        if (status != WAYWISER_TIMEOUT) {
            const std::string message = waywiser_last_error();  // settle() may call the library
            const int error = waywiser_last_errno();
            settle(status);
            raise_status(status, message, moved, error, file_call_);
        }
        if (limit.goes_on()) continue;
        raise(Failure::timeout,
              {.what = "the transfer has not ended within " + seconds_text(seconds.value_or(0)) +
                       " and goes on",
               .where = "TransferHandle.result",
               .remedy = "wait longer"},
              moved);
    }
}

std::size_t PendingTransfer::wait_any(std::span<const std::shared_ptr<PendingTransfer>> all,
                                      std::optional<double> seconds) {
    constexpr const char* kCall = "wait_any";
    if (all.empty()) {
        raise(Failure::invalid_transfer, {.what = "there are no handles",
                                          .where = kCall,
                                          .remedy = "pass a list of one handle or more"});
    }
    std::vector<waywiser_transfer*> transfers;
    transfers.reserve(all.size());
    for (const auto& one : all) {
        if (one->transfer_ != nullptr) one->check_process();
        transfers.push_back(one->transfer_);
    }
    for (SlicedWait limit(seconds, kCall);;) {
        std::size_t index = 0;
        waywiser_status status = WAYWISER_OK;
        {
            const GilRelease unlocked;
            status = waywiser_wait_any(transfers.data(), transfers.size(), limit.slice(), &index);
        }
        if (status == WAYWISER_OK) {
            (void)all[index]->done();  // lets go of its arrays
            return index;
        }
        if (status != WAYWISER_TIMEOUT) check(status);
        if (limit.goes_on()) continue;
        raise(Failure::timeout, {.what = "none of the " + std::to_string(all.size()) +
                                         " transfers has ended within " +
                                         seconds_text(seconds.value_or(0)) + "; they go on",
                                 .where = kCall,
                                 .remedy = "wait longer"});
    }
}

TransferState PendingTransfer::query() {
    if (transfer_ == nullptr) {
        return {.ended = true, .moved = bytes_, .bytes = bytes_, .error = nb::none()};
    }
    check_process();
    waywiser_transfer_info info{};
    info.size = sizeof info;
    check(waywiser_transfer_query(transfer_, &info));
    TransferState state{.ended = info.ended != 0,
                        .moved = info.moved + moved_before_,
                        .bytes = info.bytes + moved_before_,
                        .error = nb::none()};
    if (!state.ended) return state;
    // Its message is whole.
    const waywiser_status status = waywiser_transfer_result(transfer_, 0, nullptr);
    if (status != WAYWISER_OK) {
        state.error =
            error_of(status, waywiser_last_error(), state.moved, waywiser_last_errno(), file_call_);
    }
    settle(status);
    return state;
}

void PendingTransfer::cancel() {
    if (transfer_ == nullptr) return;
    check_process();
    waywiser_status status = WAYWISER_OK;
    {
        const GilRelease unlocked;
        status = waywiser_transfer_cancel(transfer_);
    }
    check(status);
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
