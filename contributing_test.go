package napisim_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step is a fenced block of CONTRIBUTING.md: a file to create, or lines to put
// after the first line that contains a needle.
type step struct{ file, after, text string }

var (
	stepFence  = regexp.MustCompile("(?ms)^```(?:go|yaml) (\\S+)(?: after \"([^\"]+)\")?\n(.*?)^```$")
	shellFence = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
)

// TestContributingPatch follows "My patch in 15 minutes" in a copy of the tree, so
// that the steps keep working as written.
func TestContributingPatch(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program from a copy of the tree")
	}
	guide, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if first := stepFence.FindStringSubmatch(string(guide)); first != nil {
		if _, err := os.Stat(first[1]); err == nil {
			t.Skipf("the tree has followed the guide already: it has %s", first[1])
		}
	}
	dir := t.TempDir()
	copyTree(t, dir)
	steps := stepFence.FindAllStringSubmatch(string(guide), -1)
	if len(steps) != 3 {
		t.Fatalf("the guide has %d steps that edit files, not 3", len(steps))
	}
	for _, m := range steps {
		step{m[1], m[2], m[3]}.apply(t, dir)
	}
	shell := shellFence.FindStringSubmatch(string(guide))
	if shell == nil {
		t.Fatal("the guide has no command")
	}
	args := strings.Fields(shell[1])
	cmd := exec.Command(args[0], append(args[1:], "-o", "json")...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", shell[1], err)
	}
	var comparison struct {
		Rows []struct {
			Metric   string
			Variants []struct {
				Label string
				Mean  float64
				N     int
			}
		}
	}
	if err := json.Unmarshal(out, &comparison); err != nil {
		t.Fatal(err)
	}
	means := map[string][]float64{}
	for _, row := range comparison.Rows {
		for _, v := range row.Variants {
			if v.N == 5 {
				means[row.Metric] = append(means[row.Metric], v.Mean)
			}
		}
	}
	for metric, promised := range map[string]func(base, patch float64) bool{
		"goodput":  func(base, patch float64) bool { return patch == base },
		"softirqs": func(base, patch float64) bool { return patch < base && patch > 0.99*base },
	} {
		if m := means[metric]; len(m) != 2 || !promised(m[0], m[1]) {
			t.Errorf("%s: %v is not what the guide promises", metric, m)
		}
	}
}

// copyTree copies what the program is built from.
func copyTree(t *testing.T, dir string) {
	t.Helper()
	keep := []string{".go", ".yaml", ".json", ".mod", ".sum", ".md"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, path), 0o777)
		}
		if !slices.Contains(keep, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, path), text, 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s step) apply(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, s.file)
	text := s.text
	if s.after != "" {
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(string(old), s.after)
		if at < 0 {
			t.Fatalf("%s has no line with %q", s.file, s.after)
		}
		at += strings.IndexByte(string(old[at:]), '\n') + 1
		text = string(old[:at]) + s.text + string(old[at:])
	} else if _, err := os.Stat(path); err == nil {
		t.Fatalf("%s exists already", s.file)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
