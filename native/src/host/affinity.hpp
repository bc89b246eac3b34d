// CPU affinity of threads. Containers may forbid setting it: calls return whether they succeeded.
#pragma once

#include <vector>

namespace waywiser::host {

std::vector<int> allowed_cpus();            // of this thread, in order
bool run_on(const std::vector<int>& cpus);  // binds this thread to any of them

// Binds this thread to `cpus` until the end of the scope, then restores its affinity.
class RunOn {
public:
    explicit RunOn(const std::vector<int>& cpus);
    ~RunOn();
    RunOn(const RunOn&) = delete;
    RunOn& operator=(const RunOn&) = delete;

private:
    std::vector<int> before_;
};

}  // namespace waywiser::host
