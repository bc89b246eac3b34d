// Where threads run. Containers may forbid it: every call says whether it worked.
#pragma once

#include <vector>

namespace waywiser::host {

std::vector<int> allowed_cpus();            // of this thread, in order
bool run_on(const std::vector<int>& cpus);  // this thread, on any of them

// Runs on `cpus` until the end of the scope, then where it ran before.
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
