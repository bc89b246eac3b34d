// The timer of an operation, which times itself.
#include "measure/timer.hpp"

namespace waywiser::measure {
namespace {

class OperationTimer final : public Timer {
public:
    explicit OperationTimer(Trial& trial) : trial_(trial) {}

    Timing take(std::size_t repetitions) override {
        const double seconds = trial_.run(repetitions) / static_cast<double>(repetitions);
        return {.span = seconds, .skew = 0, .transfers = {seconds}};
    }
    double once() override { return trial_.once(); }
    double overhead() override { return trial_.overhead(); }
    [[nodiscard]] std::size_t least_repetitions() const override {
        return trial_.least_repetitions();
    }
    [[nodiscard]] std::size_t most_repetitions() const override {
        return trial_.most_repetitions();
    }

private:
    Trial& trial_;
};

}  // namespace

std::unique_ptr<Timer> operation_timer(Trial& trial) {
    return std::make_unique<OperationTimer>(trial);
}

}  // namespace waywiser::measure
