// A child process running a program of this library. It exits when its input ends, which happens
// when this object is destroyed or this process dies.
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
    // Its input and output are connected to this object, its errors discarded. Throws
    // std::runtime_error with one line.
    Child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
          std::chrono::milliseconds to_leave = std::chrono::seconds(5));
    // Closes its input, and kills it if it does not exit in time.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Writes to its input. Throws std::runtime_error if it has exited.
    void write(std::string_view bytes);
    // Reads the next bytes of its output. Throws std::runtime_error if they do not come.
    std::string read(std::size_t bytes, std::chrono::milliseconds patience);
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    // Owns a file descriptor.
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
    Descriptor input_;   // we write to it
    Descriptor output_;  // we read from it
    pid_t pid_ = -1;
};

// The path of a program in the folder of this library or executable, or in `lib` below it.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace waywiser::host
