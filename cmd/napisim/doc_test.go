package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/reports/result"
	"napisim/scenarios"
	"napisim/scenarios/faults"
)

// TestDocumentedCommands runs every command line of the package comment, in its order.
func TestDocumentedCommands(t *testing.T) {
	if slow && testing.Short() {
		t.Skip("that the commands work is no question of races")
	}
	lines := commandLines(packageComment(t))
	if len(lines) < 9 {
		t.Fatalf("only %d command lines in the package comment", len(lines))
	}
	t.Chdir(t.TempDir())
	for _, line := range lines {
		pipeline(t, line)
	}
}

// TestExamplesOfHelp runs every example that a help text gives.
func TestExamplesOfHelp(t *testing.T) {
	if slow && testing.Short() {
		t.Skip("that the examples work is no question of races")
	}
	scenario, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	recordings, err := filepath.Abs("../../scenarios/recording/testdata/runs")
	if err != nil {
		t.Fatal(err)
	}
	stored := newCall("run", small, "--runs", "3", "-o", "json")
	stored.run(t, exit.OK)
	t.Chdir(t.TempDir())
	for name, data := range map[string]string{"mine.yaml": string(scenario), "a.json": stored.out.String(), "b.json": stored.out.String()} {
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"k612-e1000e-burst8", "k612-e1000e-burst64"} {
		if err := os.CopyFS(filepath.Join("recordings", id), os.DirFS(filepath.Join(recordings, id))); err != nil {
			t.Fatal(err)
		}
	}
	root := (&app{loader: scenarios.Default()}).root()
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		t.Run(cmd.Name(), func(t *testing.T) {
			for _, line := range commandLines(cmd.Example) {
				pipeline(t, line)
			}
		})
	}
}

func packageComment(t *testing.T) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "main.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	return f.Doc.Text()
}

// commandLines returns the indented lines that call napisim.
func commandLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); trimmed != strings.TrimRight(line, "\n") && strings.HasPrefix(trimmed, "napisim ") {
			lines = append(lines, trimmed)
		}
	}
	return lines
}

// pipeline runs commands that are joined by "|", each of which has to end well.
func pipeline(t *testing.T, line string) {
	t.Helper()
	input := ""
	for part := range strings.SplitSeq(line, " | ") {
		c := newCall(words(part)[1:]...)
		c.stdin = strings.NewReader(input)
		c.run(t, exit.OK)
		if c.err.String() != "" {
			t.Errorf("%s: %s", part, c.err.String())
		}
		input = c.out.String()
	}
	if input == "" {
		t.Errorf("%s: no output", line)
	}
}

var word = regexp.MustCompile(`'[^']*'|\S+`)

// words splits a command line as a shell does, as far as the examples need it.
func words(line string) []string {
	all := word.FindAllString(line, -1)
	for i := range all {
		all[i] = strings.Trim(all[i], "'")
	}
	return all
}

// TestDocumentedCodes compares the table of the package comment with the codes.
func TestDocumentedCodes(t *testing.T) {
	comment := packageComment(t)
	codes := []exit.Code{
		exit.OK, exit.Failed, exit.Usage, exit.Invalid, exit.Expectation, exit.Regression, exit.NoChange, exit.Broken, exit.Interrupted,
	}
	for _, code := range codes {
		if !strings.Contains(comment, fmt.Sprintf("\n\t%-4d ", code)) {
			t.Errorf("the package comment does not explain exit code %d", code)
		}
	}
}

// TestCodes gives errors the codes that scripts rely on, however they are wrapped.
func TestCodes(t *testing.T) {
	model := &scenarios.ModelError{Seed: 7, Err: errors.New("a frame is gone")}
	for _, test := range []struct {
		err  error
		want exit.Code
		text string
	}{
		{nil, exit.OK, ""},
		{os.ErrPermission, exit.Failed, "napisim: permission denied\n"},
		{
			fmt.Errorf("run: %w", model), exit.Broken,
			"napisim: run: broken invariant of the model, please report it with the scenario and seed 7: a frame is gone\n",
		},
		{faults.List{{Path: "hz", Text: "is odd"}}, exit.Invalid, "hz: is odd\n1 fault\n"},
		{faults.List{{Path: "hz", Text: "is odd"}, {Text: "is empty"}}, exit.Invalid, "hz: is odd\nis empty\n2 faults\n"},
		{interrupted(2, 3), exit.Interrupted, "napisim: interrupted: the result is of 2 of 3 runs\n"},
		{scenarios.ErrInterrupted, exit.Interrupted, "napisim: interrupted\n"},
		{exit.With(exit.Regression, errors.New("a\n1 regression")), exit.Regression, "napisim: a\nnapisim: 1 regression\n"},
	} {
		c := newCall()
		a := &app{world: c.world}
		if got := a.report(test.err); got != test.want || c.err.String() != test.text {
			t.Errorf("%v: code %d, want %d; %q", test.err, got, test.want, c.err.String())
		}
	}
}

// TestEveryPointIsExplained keeps the list of tracepoints complete.
func TestEveryPointIsExplained(t *testing.T) {
	names := pointNames()
	for _, name := range names {
		if pointHelp[name] == "" {
			t.Errorf("%s has no description", name)
		}
	}
	if len(names) != len(pointHelp) {
		t.Errorf("%d descriptions of %d points", len(pointHelp), len(names))
	}
}

func TestFileNames(t *testing.T) {
	var files []file
	for _, label := range []string{"a/b", "a b", "compare", "hz=100", "\u00b5"} {
		files = append(files, file{name: fileName(label, files)})
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	if got := strings.Join(names, " "); got != "a-b.json a-b-2.json compare-2.json hz=100.json -.json" {
		t.Errorf("got %s", got)
	}
}

func TestWait(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.2: "less than a second", 3.4: "about 3 s", 89: "about 89 s", 600: "about 10m", 7270: "about 2h1m", 1e15: "decades",
	} {
		if got := wait(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", 7.4: "7", 1234: "1200", 99999: "100000", 3.21e9: "3.2e+09"} {
		if got := amount(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}

// The result of the same commit must not depend on how it was built.
func TestVersionOfATestIsFixed(t *testing.T) {
	if got := version(); got != unstamped {
		t.Errorf("got %q", got)
	}
}

// A label of its own goes before the name of the file.
func TestOwnLabel(t *testing.T) {
	d := &result.Document{Runs: []result.Run{{Variant: "x"}}}
	if got := ownLabel(filepath.Join("a", "b.json"), d); got != "x" {
		t.Errorf("got %q", got)
	}
	d.Runs[0].Variant = ""
	if got := ownLabel(filepath.Join("a", "b.json"), d); got != "b" {
		t.Errorf("got %q", got)
	}
}
