#include "measure/who_copies.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <limits>
#include <mutex>
#include <thread>

#include "host/clock.hpp"
#include "host/start_thread.hpp"

namespace waywiser::measure {
namespace {

// So many occupations must agree that work waits; one shows that it does not. Their lengths differ,
// so that what other processes do does not end with them by chance.
constexpr int kAgreeing = 3;
constexpr int kAttempts = 12;
// An occupation lasts until the work has had so many times its time alone, and this at least.
constexpr double kTimesAlone = 10;
constexpr double kLeastSeconds = 2e-3;
// It ends by itself after this time.
constexpr double kMostSeconds = 50e-3;
// Work that takes longer alone would need longer occupations.
constexpr double kMostAloneSeconds = 1.5e-3;
// Runs of which the fastest counts; more of them if none was short enough.
constexpr int kAlone = 3;
constexpr int kMostAlone = 12;
// The kernel has all multiprocessors within this time, unless others use some.
constexpr double kOccupyingSeconds = 10e-3;
// Work that waited for multiprocessors ends so soon after they are free.
constexpr double kMostAfterSeconds = 1e-3;
constexpr double kTimesAfter = 5;

constexpr std::size_t kFilledBytes = std::size_t{1} << 20;

Observation undecided(std::string reason) {
    return {.found = WhileOccupied::undecided, .reason = std::move(reason)};
}

std::string milliseconds(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
    return text;
}

bool complete(const std::vector<gpu::Occupation*>& held) {
    return std::ranges::all_of(held, &gpu::Occupation::complete);
}

void release(const std::vector<gpu::Occupation*>& held) {
    for (gpu::Occupation* each : held) each->release();
}

// Releases occupations after some seconds, or at its end. Its thread calls no function of the
// runtime, so that no call that blocks can delay it.
class Release {
public:
    Release(const std::vector<gpu::Occupation*>& held, double seconds)
        : held_(held),
          thread_(host::start_thread<std::thread>([this, seconds] { run(seconds); })) {}
    ~Release() {
        stop();
        release(held_);
    }
    Release(const Release&) = delete;
    Release& operator=(const Release&) = delete;

    [[nodiscard]] bool over() const { return over_; }
    // No release any more, unless it was over before.
    void stop() {
        if (!thread_.joinable()) return;
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    // After stop(), if it is over: when, and whether the occupations were complete until then.
    [[nodiscard]] double at() const { return at_; }
    [[nodiscard]] bool was_complete() const { return was_complete_; }

private:
    void run(double seconds) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stopped_; });
        if (stopped_) return;
        was_complete_ = complete(held_);
        at_ = host::now();
        release(held_);
        over_ = true;
    }

    const std::vector<gpu::Occupation*>& held_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopped_ = false;
    std::atomic<bool> over_{false};
    double at_ = 0;
    bool was_complete_ = false;
    std::thread thread_;  // the last member: it uses the others
};

// The fastest of several runs. `blocks`: its call takes most of the time.
Alone run_alone(const Observed& work) {
    Alone fastest{.seconds = std::numeric_limits<double>::max()};
    for (int n = 0; n < kAlone || (n < kMostAlone && fastest.seconds > kMostAloneSeconds); ++n) {
        const double start = host::now();
        work.submit();
        const double called = host::now() - start;
        while (!work.done()) std::this_thread::yield();
        const double seconds = host::now() - start;
        if (seconds < fastest.seconds) fastest = {seconds, 2 * called > seconds};
    }
    return fastest;
}

// The host gave the work just before the release, or after it; did not look at it just before the
// release; or other work delayed it.
std::string unclear(double alone, double given, double pending, double released, double ended) {
    if (released - given < kLeastSeconds / 2) {
        return "the host was busy with other work and gave it when the multiprocessors were free";
    }
    const double late = std::max(kMostAfterSeconds, kTimesAfter * alone);
    if (ended - released > late) {
        return "it ended " + milliseconds(ended - released) +
               " after the multiprocessors were free, and alone it takes " + milliseconds(alone) +
               ": other work delayed it";
    }
    if (pending < released - kLeastSeconds / 2) {
        return "the host was busy with other work and did not see when it ended";
    }
    return "";
}

}  // namespace

gpu::Occupation& Occupier::occupation(int gpu) {
    auto& own = occupations_[gpu];
    if (!own) {
        own = std::make_unique<gpu::Occupation>(gpu);
        own->start(0);  // loads the kernel
    }
    return *own;
}

std::vector<gpu::Occupation*> Occupier::occupations(const std::vector<int>& gpus) {
    std::vector<gpu::Occupation*> held;
    for (const int gpu : gpus) held.push_back(&occupation(gpu));
    return held;
}

namespace {

// Whether one kernel has all multiprocessors of each GPU before it takes too long. Else all of them
// are released.
bool occupy(const std::vector<gpu::Occupation*>& held) {
    const double begun = host::now();
    for (gpu::Occupation* each : held) each->start(kMostSeconds);
    while (!complete(held)) {
        if (host::now() - begun > kOccupyingSeconds) {
            release(held);
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

}  // namespace

Observation Occupier::attempt(const Observed& work, const Alone& alone, double patience) {
    const std::vector<gpu::Occupation*> held = occupations(work.gpus);
    if (!occupy(held)) {
        return undecided("no kernel got all multiprocessors within " +
                         milliseconds(kOccupyingSeconds) + ": other work uses some");
    }
    Release releasing(held, patience);
    const double start = host::now();
    work.submit();
    // The last moment at which it was seen not to have ended: a call that blocks is that until it
    // returns.
    double pending = alone.blocks ? host::now() : start;
    bool ended = work.done();
    while (!ended && !releasing.over()) {
        pending = host::now();
        std::this_thread::yield();
        ended = work.done();
    }
    const bool in_time = ended && !releasing.over() && complete(held);
    while (!ended) {
        std::this_thread::yield();
        ended = work.done();
    }
    const double at = host::now();
    releasing.stop();
    if (in_time) return {.found = WhileOccupied::ended, .reason = {}, .held_seconds = at - start};
    if (!releasing.over() || !releasing.was_complete()) {
        return undecided("the kernel ended before it was released");
    }
    if (std::string reason = unclear(alone.seconds, start, pending, releasing.at(), at);
        !reason.empty()) {
        return undecided(std::move(reason));
    }
    return {.found = WhileOccupied::waited,
            .reason = {},
            .held_seconds = releasing.at() - start,
            .after_seconds = at - releasing.at()};
}

Observation Occupier::observe(const Observed& work) {
    const Alone alone = run_alone(work);
    Observation last;
    if (alone.seconds > kMostAloneSeconds) {
        last = undecided("it takes " + milliseconds(alone.seconds) +
                         " alone: too long to be waited for");
        last.alone_seconds = alone.seconds;
        return last;
    }
    int waited = 0;
    for (int n = 0; n < kAttempts && waited < kAgreeing; ++n) {
        const double patience =
            std::max(kLeastSeconds, kTimesAlone * alone.seconds) * (1 + 0.1 * n);
        last = attempt(work, alone, patience);
        if (last.found == WhileOccupied::ended) break;
        waited += last.found == WhileOccupied::waited ? 1 : 0;
    }
    if (last.found == WhileOccupied::waited && waited < kAgreeing) {
        last = undecided("only " + std::to_string(waited) + " of " + std::to_string(kAttempts) +
                         " attempts showed it clearly: other work disturbs");
    }
    last.alone_seconds = alone.seconds;
    return last;
}

Observation Occupier::kernel(int gpu) {
    gpu::Stream& stream = streams_.get(gpu, 0);
    return observe({.gpus = {gpu},
                    .submit = [&] { launch_short_kernel(stream); },
                    .done = [&] { return stream.done(); }});
}

Observation Occupier::fill(int gpu) {
    gpu::Stream& stream = streams_.get(gpu, 0);
    const gpu::DeviceBuffer buffer(gpu, kFilledBytes);
    return observe({.gpus = {gpu},
                    .submit = [&] { gpu::fill_async(buffer.data(), 0, kFilledBytes, stream); },
                    .done = [&] { return stream.done(); }});
}

Observation observe(Occupier& occupier, const PreparedWorkload& prepared) {
    const Part& part = prepared.parts().front();
    return occupier.observe({.gpus = prepared.gpus(),
                             .submit = [&] { part.start(0); },
                             .done =
                                 [&] {
                                     return std::ranges::all_of(
                                         part.lanes, [](auto* lane) { return lane->done(); });
                                 }});
}

void withdraw_unproven(WhoCopiesOutcome& outcome) {
    std::vector<Observation*> all{&outcome.fill};
    for (Observation& each : outcome.copies) all.push_back(&each);
    std::string why;
    if (outcome.kernel.found == WhileOccupied::ended) {
        why = "another kernel ran while all multiprocessors were occupied";
    } else if (outcome.kernel.found == WhileOccupied::undecided) {
        why = outcome.kernel.reason;
    } else if (std::ranges::none_of(all, [](const Observation* each) {
                   return each->found == WhileOccupied::ended;
               })) {
        why = "no copy of any kind ended while the kernel ran";
    }
    if (why.empty()) return;
    for (Observation* each : all) {
        if (each->reason.empty()) *each = undecided(why);
    }
}

}  // namespace waywiser::measure
