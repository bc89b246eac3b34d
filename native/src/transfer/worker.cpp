#include "transfer/worker.hpp"

#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "transfer/byte_text.hpp"
#include "transfer/job_end.hpp"
#include "transfer/profiler.hpp"

namespace waywiser::transfer {
namespace {

// Polling interval for chunks in flight. A chunk of 2 MiB takes 40 us on a PCIe 5.0 link.
constexpr auto kPause = std::chrono::microseconds(10);

// For a profiler: "waywiser fill 1 MiB chunked".
std::string text_of_work(const char* step, const HeldChunk& held) {
    return std::string("waywiser ") + step + ' ' + text_of_bytes(held.chunk.bytes) + ' ' +
           name_of_method(held.job->method());
}

}  // namespace

void Worker::work(int node) {
    state_.node = node;
    work_until(nullptr, Job::Until::done, {});
    end_staging_wait();
    parts_.schedule.leave(state_);
}

void Worker::help(const std::shared_ptr<Job>& job, Job::Until until, const Deadline& deadline) {
    state_.caller = true;
    state_.last_chunk = std::chrono::steady_clock::now();  // from then on it waits for its job
    work_until(job.get(), until, deadline);
    end_staging_wait();
    parts_.schedule.leave(state_);
}

// `only`: the one job that it works on, if not null.
void Worker::work_until(const Job* only, Job::Until until, const Deadline& deadline) {
    for (;;) {
        const Schedule::View now = parts_.schedule.view(state_, only);
        if (only == nullptr ? now.ends : only->reached(until)) return;
        if (now.abandons || deadline.is_over()) return;
        if (now.starts) poll_starts();
        if (make_progress(only)) continue;
        if (state_.holds_chunks()) {
            pause(now.last);
        } else {
            parts_.schedule.sleep(state_, now.generation, only, deadline);
        }
    }
}

void Worker::poll_starts() {
    for (const auto& job : parts_.schedule.poll_starts()) complete(parts_.schedule, *job);
}

// Polling interval for chunks in flight, since each poll delays submissions. A caller does not
// sleep: it yields, as the runtime does while it waits for a stream. Nor do threads that stay
// awake, unless they have spun in fill().
void Worker::pause(bool last) const {
    const bool has_spun = !state_.chunks.empty() && state_.chunks.front()->chunk.unfinished;
    if (!state_.caller && (has_spun || !parts_.schedule.spins())) {
        return std::this_thread::sleep_for(kPause);
    }
    const auto end = std::chrono::steady_clock::now() + kPause;
    do {
        std::this_thread::yield();
    } while (!last && std::chrono::steady_clock::now() < end);
}

bool Worker::make_progress(const Job* only) {
    bool progress = submit_filled();
    progress |= reap();
    if (state_.filled) return progress;
    auto held = parts_.schedule.claim(state_, only);
    if (!held) {
        end_staging_wait();
        return progress;
    }
    if (process(std::move(held))) return true;
    // Its job, for which there is no staging now, is behind the others: they may need none, and
    // then free some.
    for (std::size_t others = parts_.schedule.ready_jobs(); others > 1; --others) {
        held = parts_.schedule.claim(state_, only);
        if (!held) break;
        if (process(std::move(held))) return true;
    }
    begin_staging_wait();
    return progress;
}

// A wait lasts until the thread has a chunk with staging memory, or nothing to move.
void Worker::begin_staging_wait() {
    if (!staging_wait_) staging_wait_ = Statistics::Clock::now();
}

void Worker::end_staging_wait() {
    if (!staging_wait_) return;
    parts_.statistics.count_staging_wait(Statistics::Clock::now() - *staging_wait_);
    staging_wait_.reset();
}

// Fills a chunk and submits it. False if it got no staging: another thread takes it later.
bool Worker::process(std::unique_ptr<HeldChunk> held) {
    Job& job = *held->job;
    bool arrived = !job.failed();
    try {
        if (arrived && !parts_.staging.take(held->route(), job.node(), held->chunk)) {
            parts_.schedule.put_back(*held);
            return false;
        }
    } catch (...) {
        job.fail(std::current_exception());
        arrived = false;
    }
    end_staging_wait();
    arrived = arrived && fill(*held);
    go_on_with(std::move(held), arrived);
    return true;
}

// Whether it has not failed.
bool Worker::fill(HeldChunk& held) {
    const Schedule::HostWork working(parts_.schedule, !held.job->waits_in_fill());
    const ProfilerRange range([&] { return text_of_work("fill", held); });
    try {
        held.job->fill(held.chunk);
        return true;
    } catch (...) {
        held.job->fail(std::current_exception());
        held.chunk.unfinished = false;
        return false;
    }
}

// After fill().
void Worker::go_on_with(std::unique_ptr<HeldChunk> held, bool arrived) {
    Job& job = *held->job;
    if (held->chunk.unfinished) {
        state_.chunks.push_back(std::move(held));
        return;
    }
    if (arrived && held->chunk.ends_job) complete(parts_.schedule, job);
    if (!arrived || held->route().device < 0 || held->chunk.bytes == 0) {
        pass_on(std::move(held), arrived);
    } else if (job.gathers() && !parts_.submission.one_by_one()) {
        gather(std::move(held));
    } else {
        state_.filled = std::move(held);
        submit_filled();
    }
}

// Submits the chunk with others.
void Worker::gather(std::unique_ptr<HeldChunk> held) {
    try {
        parts_.batches.prepare(*held);
    } catch (...) {
        held->job->fail(std::current_exception());
        return pass_on(std::move(held), false);
    }
    state_.chunks.push_back(std::move(held));
    parts_.batches.add(*state_.chunks.back());
}

// Submits the chunk that the thread has filled. False if its copy engine has enough work.
bool Worker::submit_filled() {
    if (!state_.filled) return false;
    bool arrived = true;
    try {
        if (!parts_.submission.submit(*state_.filled)) return false;
    } catch (...) {
        state_.filled->job->fail(std::current_exception());
        arrived = false;
    }
    pass_on(std::move(state_.filled), arrived);
    return true;
}

// A chunk is submitted, or has ended without.
void Worker::pass_on(std::unique_ptr<HeldChunk> held, bool arrived) {
    const std::shared_ptr<Job> job = held->job;
    const bool all = parts_.schedule.submitted(*job, 1);
    if (held->submitted) {
        state_.chunks.push_back(std::move(held));
    } else {
        finish(std::move(held), arrived);
    }
    if (all) announce_submitted(parts_.schedule, *job);
}

// Completes the oldest of the thread's chunks if it is done: they end in order. New work for the
// GPU has priority over completing the next one.
bool Worker::reap() {
    if (state_.chunks.empty()) return false;
    HeldChunk& oldest = *state_.chunks.front();
    if (oldest.chunk.unfinished) return fill_again();
    bool arrived = true;
    try {
        const bool ended =
            oldest.event ? oldest.event->done() : parts_.batches.ended(oldest, arrived);
        if (!ended) return false;
    } catch (...) {
        oldest.job->fail(std::current_exception());
        arrived = false;
    }
    std::unique_ptr<HeldChunk> own = std::move(state_.chunks.front());
    state_.chunks.erase(state_.chunks.begin());
    if (!arrived) ChunkSubmission::settle(*own->job, own->chunk);
    const bool failed = own->event ? own->job->remove_in_flight(own->event) : own->job->failed();
    arrived = arrived && !failed;
    parts_.submission.leave(*own);
    if (arrived) {
        const Schedule::HostWork working(parts_.schedule);
        const ProfilerRange range([&] { return text_of_work("drain", *own); });
        try {
            own->job->drain(own->chunk);
        } catch (...) {
            own->job->fail(std::current_exception());
            arrived = false;
        }
    }
    finish(std::move(own), arrived);
    return true;
}

// The oldest chunk waits for a GPU in fill().
bool Worker::fill_again() {
    std::unique_ptr<HeldChunk> own = std::move(state_.chunks.front());
    state_.chunks.erase(state_.chunks.begin());
    const bool arrived = fill(*own);
    const bool waits = own->chunk.unfinished;
    go_on_with(std::move(own), arrived);
    return !waits;
}

void Worker::finish(std::unique_ptr<HeldChunk> held, bool arrived) {
    const std::shared_ptr<Job> job = held->job;
    if (arrived) job->add_moved(held->chunk.bytes);
    const Schedule::Next next = parts_.schedule.completed(state_, *held);
    held.reset();  // free its staging before waiters are notified
    if (next == Schedule::Next::complete_job && !job->done()) complete(parts_.schedule, *job);
    if (next == Schedule::Next::wake_all) parts_.schedule.wake_all();
}

}  // namespace waywiser::transfer
