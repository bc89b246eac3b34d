// A program of our own, started beside us, that leaves when we let go of it or die: it is told to
// by the end of its input, which the kernel sees to however we end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waywiser::host {

class Child {
public:
    // Its input and output are ours, its errors nobody's. Throws std::runtime_error with one line.
    Child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
          std::chrono::milliseconds to_leave = std::chrono::seconds(5));
    // Ends its input, and kills it where it has not left in time.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // To its input. Throws std::runtime_error where nobody reads it any more.
    void write(std::string_view bytes);
    // The next so many bytes of its output. Throws std::runtime_error where they do not come.
    std::string read(std::size_t bytes, std::chrono::milliseconds patience);
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    // A file descriptor that is closed with its owner.
    class Descriptor {
    public:
        explicit Descriptor(int number = -1) : number_(number) {}
        ~Descriptor() { close(); }
        Descriptor(const Descriptor&) = delete;
        Descriptor& operator=(const Descriptor&) = delete;
        [[nodiscard]] int number() const { return number_; }
        void adopt(int number) noexcept {
            close();
            number_ = number;
        }
        void close() noexcept;

    private:
        int number_;
    };

    [[nodiscard]] bool leaves_within(std::chrono::milliseconds patience) const noexcept;

    std::string name_;
    std::chrono::milliseconds to_leave_;
    Descriptor input_;   // where we write
    Descriptor output_;  // where we read
    pid_t pid_ = -1;
};

// A program in the folder of this library or executable, or in `lib` below it.
std::optional<std::filesystem::path> program_beside(const std::string& name);

}  // namespace waywiser::host
