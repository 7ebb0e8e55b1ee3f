// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/shell.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "sim/exchange/shell_expansion.hpp"

namespace trainsim::exchange {
namespace {

using Words = std::vector<std::string>;

/// The words of the last command of a script, open values as "$NAME".
Words last_command(const std::string& text, const std::map<std::string, std::string>& defined = {}) {
  ShellScript script;
  follow_script(script, text, "test.sh", defined);
  Words words;
  if (script.commands.empty()) return words;
  for (const std::string& word : script.commands.back()) words.push_back(show_open(word));
  return words;
}

TEST(Shell, SplitsWordsAndKeepsQuotedOnes) {
  EXPECT_EQ(last_command("run a 'b c' \"d e\" f\\ g ''"), (Words{"run", "a", "b c", "d e", "f g", ""}));
}

TEST(Shell, JoinsContinuedLinesAndDropsComments) {
  EXPECT_EQ(last_command("run a \\\n  b # not c\n"), (Words{"run", "a", "b"}));
  EXPECT_EQ(last_command("run a \\\r\n  b\r\n"), (Words{"run", "a", "b"}));
  EXPECT_EQ(last_command("run a#b"), (Words{"run", "a#b"}));
}

TEST(Shell, SubstitutesVariablesAndSplitsThemOutsideOfQuotes) {
  EXPECT_EQ(last_command("A='x y'\nrun $A \"$A\" '${A}' ${A}z"),
            (Words{"run", "x", "y", "x y", "${A}", "x", "yz"}));
  EXPECT_EQ(last_command("export A=1 B=2\nrun $A$B"), (Words{"run", "12"}));
}

TEST(Shell, TakesDefaultsOfVariables) {
  EXPECT_EQ(last_command("run ${A:-5} ${B:-$A} ${C:-\"x y\"}"), (Words{"run", "5", "$A", "x y"}));
  EXPECT_EQ(last_command("A=\nrun ${A:-5} a${A-6}"), (Words{"run", "5", "a"}));
}

TEST(Shell, LeavesOpenWhatOnlyARunKnows) {
  EXPECT_EQ(last_command("run $NODES `hostname` $(date +%s) $1"),
            (Words{"run", "$NODES", "$(…)", "$(…)", "$1"}));
}

TEST(Shell, KeepsDefinedVariables) {
  EXPECT_EQ(last_command("A=1\nrun $A $1", {{"A", "7"}, {"1", "first"}}), (Words{"run", "7", "first"}));
}

TEST(Shell, Calculates) {
  EXPECT_EQ(last_command("A=8\nB=$((A*$A/2 - (3+1) % 3))\nrun $B $((A*Q))"), (Words{"run", "31", "$Q"}));
  EXPECT_EQ(shell_arithmetic("2+3*4"), 14);
  EXPECT_EQ(shell_arithmetic("1/0"), std::nullopt);
  EXPECT_EQ(shell_arithmetic("9223372036854775807+1"), std::nullopt);
  EXPECT_EQ(shell_arithmetic("1 2"), std::nullopt);
}

TEST(Shell, HasArrays) {
  EXPECT_EQ(last_command("A=(a 'b c' # it's a comment\n  \"d $X\")\nA+=(e)\nrun ${A[@]} \"${A[@]}\" $A"),
            (Words{"run", "a", "b", "c", "d", "$X", "e", "a", "b c", "d $X", "e", "a"}));
}

TEST(Shell, FollowsConditions) {
  const std::string script =
      "if [ \"$S\" == 1B ]; then N=1\nelif [[ $S = 2B && -n $S ]]; then N=2\nelse N=3; fi\nrun $N";
  EXPECT_EQ(last_command(script, {{"S", "1B"}}), (Words{"run", "1"}));
  EXPECT_EQ(last_command(script, {{"S", "2B"}}), (Words{"run", "2"}));
  EXPECT_EQ(last_command(script), (Words{"run", "3"}));
  EXPECT_EQ(
      last_command("N=5\nif [ ! -f x ]; then N=1; fi\nif [ $N -gt 4 ] || false; then M=2; fi\nrun $N $M"),
      (Words{"run", "5", "2"}));
}

TEST(Shell, FollowsCases) {
  const std::string script = "case $S in\n a|b) N=1 ;;\n c*) N=2 ;;\n *) N=3 ;;\nesac\nrun $N";
  EXPECT_EQ(last_command(script, {{"S", "b"}}), (Words{"run", "1"}));
  EXPECT_EQ(last_command(script, {{"S", "cat"}}), (Words{"run", "2"}));
  EXPECT_EQ(last_command(script, {{"S", "x"}}), (Words{"run", "3"}));
}

TEST(Shell, FollowsCommandsInTexts) {
  EXPECT_EQ(last_command("C='run a'\nsrun bash -c '$C b'"), (Words{"run", "a", "b"}));
  EXPECT_EQ(last_command("C=\"run a | tee log\"\neval $C"), (Words{"tee", "log"}));
}

TEST(Shell, DropsRedirections) {
  EXPECT_EQ(last_command("run a > log 2>&1 b &> all"), (Words{"run", "a", "b"}));
}

TEST(Shell, ReadsHereDocuments) {
  ShellScript script;
  follow_script(script, "S=1\ncat <<EOT > file\n{\"stage\": $S, \"it's\": 1}\nEOT\ncat <<'X'\n$S\nX\n",
                "test.sh", {});
  ASSERT_EQ(script.documents.size(), 2U);
  EXPECT_EQ(script.documents[0], "{\"stage\": 1, \"it's\": 1}\n");
  EXPECT_EQ(script.documents[1], "$S\n");
}

TEST(Shell, SaysWhatItDoesNotFollow) {
  ShellScript script;
  follow_script(script, "for i in 1 2; do\nrun $i\ndone\nf() {\nrun x\n}\n", "test.sh", {});
  EXPECT_EQ(script.notes, (Words{"test.sh, line 1: the loop is gone through once",
                                 "test.sh, line 4: the function is not followed"}));
  ASSERT_EQ(script.commands.size(), 1U);
  EXPECT_EQ(script.commands[0], (Words{"run", "1"}));
}

TEST(Shell, RefusesWhatIsNeverClosed) {
  ShellScript script;
  try {
    follow_script(script, "a\nb 'c\nd", "test.sh", {});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "test.sh:2: error: ' is never closed; this is no complete shell script");
  }
}

}  // namespace
}  // namespace trainsim::exchange
