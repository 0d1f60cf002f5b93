#include "chexnet/core/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "chexnet/core/error.hpp"

namespace chexnet {

std::string command_text(const std::vector<std::string>& command) {
  std::string text;
  for (const auto& word : command) {
    const bool plain =
        !word.empty() &&
        word.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
            "-_./=:,@%+^") == std::string::npos;
    text += text.empty() ? "" : " ";
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word)
      text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool in_word = false;
  for (const char c : text) {
    const bool blank =
        quote == 0 && std::isspace(static_cast<unsigned char>(c));
    if (blank && in_word) words.push_back(std::exchange(word, ""));
    in_word = !blank;
    if (blank) continue;
    const bool is_quote = c == '\'' || c == '"';
    if (is_quote && (quote == 0 || quote == c))
      quote = quote == 0 ? c : 0;
    else
      word += c;
  }
  if (quote != 0)
    throw ConfigError(
        "[launch] {}: a quote is not closed. Hint: close it, or put it between "
        "quotes of the other kind",
        text);
  if (in_word) words.push_back(word);
  return words;
}

bool has_option(const std::vector<std::string>& words,
                const std::string& name) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return word == name || word.starts_with(name + "=");
  });
}

}  // namespace chexnet
