// A system that starts few threads, or none, for the library.
#pragma once

namespace waywiser::test {

// As long as it lives, so many threads can be started, besides those of streams of the fake GPU.
// Only one at a time.
class ThreadsLeft {
public:
    static constexpr int kAny = -1;
    explicit ThreadsLeft(int count);
    ~ThreadsLeft();
    ThreadsLeft(const ThreadsLeft&) = delete;
    ThreadsLeft& operator=(const ThreadsLeft&) = delete;
};

}  // namespace waywiser::test
