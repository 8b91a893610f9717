#include "facility/timestamp.h"

#include <string>

#include "facility/csv.h"

namespace joulediff::facility {

namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  char peek() const { return text_.empty() ? '\0' : text_.front(); }

  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  // A number of `least` to `most` digits.
  bool digits(int& value, std::size_t least, std::size_t most) {
    std::size_t count = 0;
    value = 0;
    while (count < most && count < text_.size() && text_[count] >= '0' && text_[count] <= '9')
      value = value * 10 + (text_[count++] - '0');
    text_.remove_prefix(count);
    return count >= least;
  }
  void blanks() {
    while (take(" ")) {
    }
  }

 private:
  std::string_view text_;
};

bool date(Scanner& in, DateOrder order, Civil& out) {
  int first = 0;
  if (!in.digits(first, 1, 4)) return false;
  if (in.take("-")) {
    out.year = first;
    return first >= 1000 && in.digits(out.month, 2, 2) && in.take("-") && in.digits(out.day, 2, 2);
  }
  if (in.take(".")) {
    out.day = first;
    return in.digits(out.month, 1, 2) && in.take(".") && in.digits(out.year, 4, 4);
  }
  if (order == DateOrder::unknown || !in.take("/")) return false;
  int second = 0;
  if (!in.digits(second, 1, 2) || !in.take("/") || !in.digits(out.year, 4, 4)) return false;
  out.day = order == DateOrder::day_first ? first : second;
  out.month = order == DateOrder::day_first ? second : first;
  return true;
}

bool time(Scanner& in, Civil& out) {
  if (!in.digits(out.hour, 1, 2) || !in.take(":") || !in.digits(out.minute, 2, 2)) return false;
  if (in.take(":") && !in.digits(out.second, 2, 2)) return false;
  int fraction = 0;
  if (in.take(".") && !in.digits(fraction, 1, 9)) return false;
  in.blanks();
  const bool after_noon = in.take("PM");
  if (!after_noon && !in.take("AM")) return true;
  if (out.hour < 1 || out.hour > 12) return false;
  out.hour = out.hour % 12 + (after_noon ? 12 : 0);
  return true;
}

bool offset(Scanner& in, std::optional<int>& out) {
  in.blanks();
  if (in.take("(CET)")) out = 3600;
  if (in.take("(CEST)")) out = 7200;
  if (in.take("Z") || in.take("UTC")) out = 0;
  const int sign = in.take("+") ? 1 : in.take("-") ? -1 : 0;
  if (sign == 0) return true;
  int hours = 0;
  int minutes = 0;
  if (!in.digits(hours, 2, 2)) return false;
  in.take(":");
  if (!in.done() && !in.digits(minutes, 2, 2)) return false;
  out = sign * (hours * 3600 + minutes * 60);
  return hours <= 15 && minutes < 60;
}

}  // namespace

std::optional<Stamp> read_stamp(std::string_view text, DateOrder order) {
  text = trimmed(text.substr(0, text.find(" - ")));
  Scanner in(text);
  Stamp stamp;
  if (!date(in, order, stamp.local)) return std::nullopt;
  if (!in.done()) {
    if (!in.take("T") && in.peek() != ' ') return std::nullopt;
    in.blanks();
    if (!time(in, stamp.local) || !offset(in, stamp.offset)) return std::nullopt;
  }
  if (!in.done() || !exists(stamp.local)) return std::nullopt;
  if (stamp.local.year < kFirstYear || stamp.local.year > kLastYear + 1) return std::nullopt;
  return stamp;
}

}  // namespace joulediff::facility
