// The tracer of one process: what it has seen, its thread, and its file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "trace/aggregate.hpp"
#include "trace/call_log.hpp"
#include "trace/cupti.hpp"
#include "trace/process_file.hpp"
#include "trace/records.hpp"
#include "trace/sites.hpp"

namespace waywiser::trace {

class Tracer {
public:
    Tracer(Cupti cupti, const std::string& folder);
    // The tracer of a process that was forked from the one of `parent`: nothing but the
    // registration is the same.
    static Tracer* child_of(const Tracer& parent);
    // Null: none, or the process is at its end.
    static Tracer* current();
    static void set_current(Tracer* tracer);

    // Registers callbacks, and enables what is recorded. `leave_buffers`: another profiler was
    // loaded before; if it has the callbacks, it keeps the records too.
    void enable(bool leave_buffers);
    // Looks for Python, the transfer library and other profilers. Called again and again.
    void look_at_process();
    // The tracer's thread collects each second. A forked child starts it with its first call of
    // CUDA.
    void start_thread();
    // Collects all, and writes the file for the last time.
    void finish();

    // A profiler of the program registers for what the tracer has.
    void leave_callbacks();
    void leave_buffers();

    // Around a fork: the child must not begin where the tracer's thread holds a lock of the system.
    void before_fork();
    void after_fork();

    void on_call(std::uint32_t domain, std::uint32_t id, const cupti::CallData& data);
    void on_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid);
    void add(const LibraryCopy& copy);
    void note(const std::string& code, const std::string& text);

    // Memory for CUPTI to write records to; null if there is none.
    std::uint8_t* new_buffer();
    void keep_buffer(std::uint8_t* buffer);

    const Cupti& cupti() const { return cupti_; }

    Sites sites;
    CallLog calls{sites};

private:
    explicit Tracer(const Cupti& cupti) : cupti_(cupti) {}
    void run();
    void collect(bool last);
    void watch_records(std::size_t calls);
    void describe_gpus();
    void update_notes();
    std::string text_now(bool last);
    void write(bool last);
    void enable_activities();
    void enable_callbacks();
    void enable_managed();
    void measure_clock();

    const Cupti cupti_;
    cupti::Subscriber subscriber_ = nullptr;

    std::mutex mutex_;  // of what follows
    Aggregator sums_;
    ProcessFacts facts_;
    RecordsOf records_of_;
    std::uint64_t records_ = 0;  // since the last second
    std::size_t calls_without_records_ = 0;
    int seconds_without_records_ = 0;
    int write_error_ = 0;
    int managed_tries_ = 0;

    std::mutex short_mutex_;  // never held for long: the program's threads take it
    std::vector<std::uint8_t*> kept_buffers_;
    std::vector<LibraryCopy> library_copies_;

    std::timed_mutex collecting_;
    std::mutex thread_mutex_;
    std::condition_variable thread_wakes_;
    bool stop_ = false, stopped_ = false;  // guarded by thread_mutex_
    bool facts_changed_ = false;           // guarded by mutex_
    bool managed_ = false;                 // is recorded
    bool own_clock_ = false;               // CUPTI uses the clock of this library
    std::atomic<bool> lines_ = false, buffers_ = false, started_ = false, finished_ = false;
};

}  // namespace waywiser::trace
