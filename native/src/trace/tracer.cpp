#include "trace/tracer.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "trace/buffers.hpp"
#include "trace/clock.hpp"
#include "trace/gpu_facts.hpp"
#include "trace/later_profilers.hpp"
#include "trace/library.hpp"
#include "trace/python_frames.hpp"

namespace waywiser::trace {
namespace {

constexpr std::uint64_t kSettledAfter = 2'000'000'000;  // ns
constexpr std::size_t kMostSettledForFile = 100'000;
constexpr int kSecondsUntilTaken = 5, kMostManagedTries = 3;
constexpr std::size_t kCallsUntilTaken = 10, kMostKeptBuffers = 8;

std::atomic<Tracer*> the_tracer{nullptr};
thread_local constinit bool holds_collecting = false;  // while this thread forks

}  // namespace

Tracer* Tracer::current() { return the_tracer.load(std::memory_order_acquire); }
void Tracer::set_current(Tracer* tracer) { the_tracer.store(tracer, std::memory_order_release); }

Tracer::Tracer(Cupti cupti, const std::string& folder) : cupti_(std::move(cupti)) {
    facts_ = describe_process(folder);
    facts_.cupti_path = cupti_.path;
    facts_.cupti_version = cupti_.version;
    facts_.driver = driver_version();
    records_of_.cupti_version = cupti_.version;
}

Tracer* Tracer::child_of(const Tracer& parent) {
    // Only what does not change: another thread of the parent may have been writing the rest.
    auto* const child = new Tracer(parent.cupti_);
    child->facts_.folder = parent.facts_.folder;
    child->facts_.command = parent.facts_.command;
    child->facts_.cupti_path = parent.cupti_.path;
    child->facts_.cupti_version = parent.facts_.cupti_version;
    child->facts_.driver = parent.facts_.driver;
    child->facts_.kernels = parent.facts_.kernels;
    set_start(child->facts_);
    child->records_of_.cupti_version = parent.facts_.cupti_version;
    child->records_of_.not_before = child->facts_.start_ns;
    child->own_clock_ = parent.own_clock_;
    child->managed_tries_ = kMostManagedTries;
    child->subscriber_ = parent.subscriber_;
    child->lines_ = parent.lines_.load();
    child->buffers_ = parent.buffers_.load();
    return child;
}

void Tracer::note(const std::string& code, const std::string& text) {
    const std::lock_guard lock(mutex_);
    facts_.notes[code] = text;
    facts_changed_ = true;
}

void Tracer::start_thread() {
    if (started_.exchange(true)) return;
    // Signals are for the program's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread{};
    const int error = pthread_create(
        &thread, nullptr,
        [](void* tracer) -> void* {
            static_cast<Tracer*>(tracer)->run();
            return nullptr;
        },
        this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error == 0) {
        pthread_detach(thread);
        return;
    }
    const std::lock_guard lock(thread_mutex_);
    stopped_ = true;
    note("no-thread", std::string("the tracer's thread cannot be started (") +
                          std::strerror(error) + "): the file is written at the end alone");
}

void Tracer::run() {
    pthread_setname_np(pthread_self(), "waywiser-trace");
    std::unique_lock lock(thread_mutex_);
    // Not at once: the driver is still in its first call.
    while (!thread_wakes_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; })) {
        lock.unlock();
        collect(false);
        lock.lock();
    }
    stopped_ = true;
    thread_wakes_.notify_all();
}

void Tracer::finish() {
    if (!started_ || finished_.exchange(true)) return;
    std::unique_lock lock(thread_mutex_);
    stop_ = true;
    thread_wakes_.notify_all();
    // It may be inside of CUPTI, which may wait for a GPU that does not answer.
    const bool stopped =
        thread_wakes_.wait_for(lock, std::chrono::seconds(3), [this] { return stopped_; });
    lock.unlock();
    if (stopped) collect(true);
}

void Tracer::look_at_process() {
    python::look();
    if (lines_ || buffers_) make_way_for_profilers(cupti_);
    std::string why_not;
    join_transfer_library(why_not);
    if (!why_not.empty()) note("library-traced", why_not);
}

void Tracer::before_fork() {
    // The thread may be inside of CUPTI for long. The fork has to go on.
    holds_collecting = collecting_.try_lock_for(std::chrono::milliseconds(100));
}

void Tracer::after_fork() {
    if (std::exchange(holds_collecting, false)) collecting_.unlock();
}

void Tracer::collect(bool last) {
    const std::lock_guard collecting(collecting_);
    look_at_process();
    if (!managed_ && buffers_ && managed_tries_ < kMostManagedTries) enable_managed();
    if (!own_clock_) measure_clock();
    if (buffers_) cupti_.flush(last ? 1 : 0);
    std::vector<LibraryCopy> copies;
    {
        const std::lock_guard lock(short_mutex_);
        copies.swap(library_copies_);
    }
    const std::vector<Call> calls = this->calls.take();
    {
        const std::lock_guard lock(mutex_);
        for (const LibraryCopy& copy : copies) sums_.add(copy);
        for (const Call& call : calls) sums_.add(call);
        const std::uint64_t now = monotonic_now();
        last ? sums_.settle_all() : sums_.settle(now - kSettledAfter);
    }
    describe_gpus();
    watch_records(static_cast<std::size_t>(std::count_if(
        calls.begin(), calls.end(), [](const Call& call) { return call.kind == CallKind::Copy; })));
    update_notes();
    write(last);
}

void Tracer::watch_records(std::size_t calls) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(records_, 0) != 0 || !buffers_) {
        seconds_without_records_ = 0;
        calls_without_records_ = 0;
        return;
    }
    calls_without_records_ += calls;
    if (calls_without_records_ < kCallsUntilTaken ||
        ++seconds_without_records_ < kSecondsUntilTaken)
        return;
    facts_.notes["activity-taken"] =
        "CUPTI has delivered no records for some seconds in which copies were called: another "
        "profiler in the process may have taken them; copies since then are missing";
}

void Tracer::update_notes() {
    const std::uint64_t lost = calls.lost();
    const std::string why_no_lines = python::state() == python::State::Off ? python::why_off() : "";
    const std::lock_guard lock(mutex_);
    if (facts_.dropped != 0) {
        facts_.notes["dropped"] = "CUPTI has dropped " + std::to_string(facts_.dropped) +
                                  " records: all totals are at least what they say";
    }
    if (lost != 0) {
        facts_.notes["calls-lost"] =
            "the lines of " + std::to_string(lost) + " calls were not kept: too many in one second";
    }
    if (!why_no_lines.empty())
        facts_.notes["frames-unknown"] = "lines of Python are not known: " + why_no_lines;
}

void Tracer::describe_gpus() {
    std::vector<int> unknown;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [number, sums] : sums_.gpus()) {
            if (!facts_.gpus.contains(number)) unknown.push_back(number);
        }
    }
    for (const int number : unknown) {
        const GpuFacts found = describe_gpu(number);
        const std::lock_guard lock(mutex_);
        facts_.gpus[number] = found;
    }
}

// Empty: nothing has changed.
std::string Tracer::text_now(bool last) {
    std::unique_lock lock(mutex_);
    const bool changed = sums_.take_changed(), facts_changed = std::exchange(facts_changed_, false);
    if (!changed && !facts_changed && !last) return {};
    facts_.last_ns = monotonic_now();
    facts_.ended = last;
    if (last || sums_.size() > kMostSettledForFile) return to_json(facts_, sums_, sites.all());
    // What has not settled is in the file too, where that costs little: the process may be killed.
    Aggregator now = sums_;
    const ProcessFacts facts = facts_;
    lock.unlock();
    now.settle_all();
    return to_json(facts, now, sites.all());
}

void Tracer::write(bool last) {
    const std::string text = text_now(last);
    if (text.empty()) return;
    const int error = write_file(facts_, text);
    if (error == 0 || std::exchange(write_error_, error) == error) return;
    std::fprintf(stderr, "waywiser trace: cannot write to %s: %s; process %d is not traced\n",
                 facts_.folder.c_str(), std::strerror(error), static_cast<int>(getpid()));
}

void Tracer::on_call(std::uint32_t domain, std::uint32_t id, const cupti::CallData& data) {
    const ApiCall* const call = find_call(domain, id);
    if (call == nullptr || finished_.load(std::memory_order_relaxed)) return;
    if (data.site == cupti::kEnter) {
        if (!started_.load(std::memory_order_relaxed)) start_thread();
        calls.enter(domain, *call, data);
    } else {
        calls.leave(*call, data);
    }
}

void Tracer::on_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer,
                       std::size_t valid) {
    const std::lock_guard lock(mutex_);
    cupti::Record* record = nullptr;
    while (valid != 0 && cupti_.next_record(buffer, valid, &record) == cupti::kSuccess) {
        ++records_;
        add_record(sums_, *record, records_of_);
    }
    std::size_t dropped = 0;
    if (cupti_.dropped != nullptr && cupti_.dropped(context, stream, &dropped) == cupti::kSuccess)
        facts_.dropped += dropped;
}

void Tracer::add(const LibraryCopy& copy) {
    const std::lock_guard lock(short_mutex_);
    library_copies_.push_back(copy);
}

std::uint8_t* Tracer::new_buffer() {
    {
        const std::lock_guard lock(short_mutex_);
        if (!kept_buffers_.empty()) {
            std::uint8_t* const buffer = kept_buffers_.back();
            kept_buffers_.pop_back();
            return buffer;
        }
    }
    return static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
}

void Tracer::keep_buffer(std::uint8_t* buffer) {
    const std::lock_guard lock(short_mutex_);
    if (kept_buffers_.size() < kMostKeptBuffers) {
        kept_buffers_.push_back(buffer);
    } else {
        std::free(buffer);
    }
}

void Tracer::measure_clock() {
    if (cupti_.get_timestamp == nullptr) return;
    std::uint64_t best = ~0ull, step = 0;
    for (int i = 0; i < 5; ++i) {
        std::uint64_t theirs = 0;
        const std::uint64_t before = monotonic_now();
        if (cupti_.get_timestamp(&theirs) != cupti::kSuccess) return;
        const std::uint64_t after = monotonic_now();
        if (after - before >= best) continue;
        best = after - before;
        step = before + best / 2 - theirs;
    }
    const std::lock_guard lock(mutex_);
    records_of_.clock_step = static_cast<std::int64_t>(step);
}

}  // namespace waywiser::trace
