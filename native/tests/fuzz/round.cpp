#include "fuzz/round.hpp"

#include <array>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

#include "fake/fake.hpp"
#include "fake/stream_thread.hpp"
#include "fuzz/operations.hpp"
#include "support/sanitizer.hpp"

namespace waywiser::fuzz {
namespace {

// The draws of a round are those of no thread.
constexpr std::uint64_t kOfRound = ~std::uint64_t{0};
constexpr std::size_t kMostThreads = 8;
// Both the memory of all threads and what is expected of it.
constexpr std::size_t kAllBytes = 512 * kMiB;
constexpr std::size_t kRegionBytes = 24 * kMiB;

struct Fault {
    const char* setting;
    std::size_t most;  // of the number after it
};
constexpr std::array kFaults = {
    Fault{"fail=call@", 900},   Fault{"fail=call@/", 200},  Fault{"fail=copy@", 120},
    Fault{"fail=copy@/", 40},   Fault{"fail=event@", 200},  Fault{"fail=event@/", 60},
    Fault{"fail=query@", 200},  Fault{"fail=query@/", 60},  Fault{"fail=alloc@", 20},
    Fault{"fail=launch@", 20},  Fault{"fail=sync@", 20},    Fault{"oom_at=", 20},
    Fault{"oom_at=/", 5},       Fault{"sticky=call@", 900}, Fault{"sticky=copy@", 120},
    Fault{"sticky=query@", 90}, Fault{"lost=copy@", 120},   Fault{"lost=event@", 200},
};

struct Drawn {
    int gpus = 1;
    std::size_t threads = 1;
    std::size_t contexts = 1;
    std::size_t region_bytes = 0;
    std::string fake;   // without a fault
    std::string fault;  // with a hang
    double hang_seconds = 0;
    bool released_after_faults = false;

    [[nodiscard]] std::string text() const {
        return std::to_string(threads) + " threads, " + std::to_string(contexts) + " contexts, " +
               std::to_string(region_bytes >> 10) + " KiB, " + fake + fault;
    }
};

std::string draw_fake(Draw& draw, int gpus) {
    std::string text = "devices=" + std::to_string(gpus) + ";event=0;";
    text += draw.one_in(4) ? "latency=20;h2d=2;d2h=2;d2d=4;peer=3;staged=1;"
                           : "latency=0;h2d=80;d2h=80;d2d=80;peer=80;staged=80;";
    if (draw.one_in(6)) text += "without=batch;";
    if (draw.one_in(6)) text += "no_peers=all;";
    if (draw.one_in(6)) text += "pageable_access=1;";
    if (draw.one_in(4)) text += "delay=0.003@/" + std::to_string(draw.between(2, 20)) + ";";
    if (draw.one_in(6)) text += "block=copy@/" + std::to_string(draw.between(2, 20)) + ";";
    return text;
}

Drawn draw_round(const Settings& settings, std::uint64_t seed) {
    Draw draw(seed, kOfRound, 0);
    Drawn drawn;
    drawn.gpus = static_cast<int>(draw.between(1, 3));
    const std::size_t threads = draw.between(1, draw.one_in(2) ? 3 : kMostThreads);
    drawn.threads = settings.threads == 0 ? threads : settings.threads;
    drawn.contexts = draw.between(1, 4);
    const std::size_t regions = 2 * (5 + static_cast<std::size_t>(drawn.gpus));
    const std::size_t sanitized = test::sanitizer() == test::Sanitizer::none ? 1 : 3;
    drawn.region_bytes = std::min(kRegionBytes, kAllBytes / drawn.threads / regions) / sanitized;
    if (draw.one_in(4)) drawn.region_bytes = std::min(drawn.region_bytes, 2 * kMiB);
    drawn.fake = draw_fake(draw, drawn.gpus) + settings.fake;
    if (!drawn.fake.ends_with(';')) drawn.fake += ';';
    const bool faulty = draw.one_in(2);
    const Fault fault = draw.of(kFaults);
    const std::size_t number = draw.between(1, fault.most);
    drawn.released_after_faults = draw.one_in(2);
    if (settings.faults && faulty) drawn.fault = fault.setting + std::to_string(number);
    const bool hangs = draw.one_in(5);
    const std::size_t hung_copy = draw.between(1, 120);
    const double hang_seconds = draw.of(std::array<double, 3>{0.5, 2, 7});
    if (settings.hangs && hangs) {
        drawn.fault = "hang=copy@" + std::to_string(hung_copy);
        drawn.hang_seconds = hang_seconds;
    }
    return drawn;
}

// Ends a hang after some time, or when it is not needed any more.
class EndOfHang {
public:
    EndOfHang(double seconds, std::string fake) : fake_(std::move(fake)) {
        if (seconds <= 0) return;
        thread_ = std::thread([this, seconds] {
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return ended_; });
            fake::configure(fake_);
        });
    }
    ~EndOfHang() {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable()) thread_.join();
    }
    EndOfHang(const EndOfHang&) = delete;
    EndOfHang& operator=(const EndOfHang&) = delete;

private:
    std::string fake_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::thread thread_;
};

// Lets threads go on together.
class Barrier {
public:
    explicit Barrier(std::size_t threads) : missing_(threads) {}
    void arrive_and_wait() {
        std::unique_lock lock(mutex_);
        if (--missing_ == 0) changed_.notify_all();
        changed_.wait(lock, [&] { return missing_ == 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t missing_;
};

struct Played {
    std::vector<std::vector<Outcome>> outcomes;  // of each thread
    bool in_use = false;
};

Played play(const Settings& settings, std::uint64_t seed, const Drawn& drawn,
            const std::vector<std::string>& kinds) {
    Draw draw(seed, kOfRound, 1);
    fake::configure(drawn.fake);
    Contexts contexts(drawn.contexts, drawn.gpus, kinds, draw);
    Round round;
    round.seed = seed;
    round.gpus = drawn.gpus;
    round.region_bytes = drawn.region_bytes;
    round.operations = settings.operations;
    round.faulty = !drawn.fault.empty() && drawn.hang_seconds == 0;
    round.hang_seconds = drawn.hang_seconds;
    round.threads = drawn.threads;
    round.runtime_blocks = drawn.fake.find("block=") != std::string::npos;
    round.keeps_contexts = !settings.compare.empty();
    round.folder = settings.folder;
    round.contexts = &contexts;
    Played played;
    played.outcomes.resize(drawn.threads);
    Barrier allocated(drawn.threads + 1);
    Barrier begins(drawn.threads + 1);
    Barrier ended(drawn.threads + 1);
    Barrier released(drawn.threads + 1);
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < drawn.threads; ++number) {
        threads.emplace_back([&, number] {
            auto player = std::make_unique<Player>(round, number);
            allocated.arrive_and_wait();
            begins.arrive_and_wait();
            player->play();
            played.outcomes[number] = player->outcomes();
            ended.arrive_and_wait();
            released.arrive_and_wait();
        });
    }
    allocated.arrive_and_wait();
    if (!drawn.fault.empty()) fake::configure(drawn.fake + drawn.fault);
    {
        const EndOfHang rescue(drawn.hang_seconds, drawn.fake);
        begins.arrive_and_wait();
        ended.arrive_and_wait();
        if (!drawn.released_after_faults) contexts.release_all();
    }
    fake::configure(drawn.fake);
    contexts.release_all();
    played.in_use = round.in_use;
    fake::wait_device(-1);  // no memory is freed that the fake GPU still uses
    released.arrive_and_wait();
    for (auto& thread : threads) thread.join();
    return played;
}

// Nothing may be left of a round, unless a context keeps it because a GPU might still use it.
void check_leaks(const fake::Live& before, const Played& played) {
    if (played.in_use || fake::live() == before) return;
    std::ostringstream text;
    text << "before: " << before << "\nafter: " << fake::live();
    Report::fail("objects of the GPU runtime are left", text.str());
}

void compare(const Settings& settings, const Played& one, const Played& other) {
    for (std::size_t thread = 0; thread < one.outcomes.size(); ++thread) {
        const auto& first = one.outcomes[thread];
        const auto& second = other.outcomes[thread];
        for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
            if (!first[i].certain || !second[i].certain) continue;
            if (first[i].what == second[i].what && first[i].status == second[i].status &&
                first[i].value == second[i].value) {
                continue;
            }
            const auto text = [](const Outcome& outcome) {
                return outcome.what + ": " + status_name(outcome.status) + ", " +
                       std::to_string(outcome.value);
            };
            Report::fail("two kinds of contexts differ",
                         "thread " + std::to_string(thread) + "\n" + settings.compare[0] + ": " +
                             text(first[i]) + "\n" + settings.compare[1] + ": " + text(second[i]));
        }
    }
}

}  // namespace

void play_round(const Settings& settings, std::uint64_t seed) {
    const Drawn drawn = draw_round(settings, seed);
    Report::round(settings, seed, drawn.text());
    if (!settings.quiet) {
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), drawn.text().c_str());
        std::fflush(stdout);
    }
    const fake::Live before = fake::live();
    std::vector<Played> played;
    if (settings.compare.empty()) {
        played.push_back(play(settings, seed, drawn, settings.contexts));
    }
    for (const std::string& kind : settings.compare) {
        played.push_back(play(settings, seed, drawn, {kind}));
    }
    for (const Played& each : played) {
        check_leaks(before, each);
    }
    if (played.size() == 2) compare(settings, played[0], played[1]);
}

std::vector<std::string> fault_names() {
    std::vector<std::string> names;
    for (const Fault& fault : kFaults) names.push_back(std::string(fault.setting) + "N");
    names.emplace_back("hang=copy@N");
    return names;
}

}  // namespace waywiser::fuzz
