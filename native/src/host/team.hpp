// A team of pinned threads that start together. They sleep between starts and are awake once armed.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace waywiser::host {

// Runs one job at a time: a caller that comes while another's job runs waits for its end. Threads
// spin only for a moment before they sleep.
class Team {
public:
    // One thread per entry of `cpus`: the CPUs it may run on. Throws NoThread.
    explicit Team(std::vector<std::vector<int>> cpus);
    ~Team();  // also while armed: then no job starts
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    [[nodiscard]] std::size_t size() const { return threads_.size(); }

    // Wakes all threads; returns when all are awake and watch the flag. `job` is called with the
    // thread's number and must outlive wait(). If release() follows at once, all start together.
    void arm(const std::function<void(std::size_t)>& job);
    void release();  // raises the flag: all jobs start
    // Returns when all jobs are done; rethrows the first failure. Sleeps meanwhile, so that it uses
    // no CPU.
    void wait();

    // The same for a caller that is itself one of the workers, on its own CPU: all threads start as
    // they wake (those that worked a moment ago are still awake), and the caller spins for a moment
    // before it sleeps until they are done.
    void start(const std::function<void(std::size_t)>& job);
    void join();

private:
    unsigned prepare(const std::function<void(std::size_t)>& job);
    void work(std::size_t index, const std::vector<int>& cpus);
    void await_round(unsigned last) const;
    void arrive(std::atomic<unsigned>& count) const;
    [[nodiscard]] bool start_of(unsigned round);
    void raise(unsigned signal);
    void end();
    void finish();

    // Two values of the signal for each round, one after the other.
    static unsigned look(unsigned round) { return 2 * round; }  // all have come: stay awake
    static unsigned go(unsigned round) { return 2 * round + 1; }

    std::atomic<bool> taken_{false};  // by a caller
    const std::function<void(std::size_t)>* job_ = nullptr;
    std::atomic<unsigned> armed_{0};  // the round that threads wake for
    std::atomic<unsigned> signal_{0};
    std::atomic<unsigned> ready_{0};  // threads that have come
    std::atomic<unsigned> awake_{0};  // threads that have seen look()
    std::atomic<unsigned> busy_{0};
    std::atomic<bool> ending_{false};
    std::mutex failure_guard_;
    std::exception_ptr failure_;
    std::vector<std::jthread> threads_;
};

}  // namespace waywiser::host
